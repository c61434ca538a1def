#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Asks /dev/vpmu_kvm for what it must not do, and it refuses; a guest counts on exactly.

kvm_state.py SEED [--faults] QEMU OPTION...   tests/bare/moved.c is stopped in mid-count.
What is refused has changed nothing: its state is saved again and the same. With --faults
the module has fail_nth: each of its calls while it loads fails once. Then the first state
is loaded and the guest goes on; its cases and QEMU's status are this one's.
"""
import ctypes, errno, fcntl, os, random, struct, subprocess, sys, tempfile, time

from migrate import Qemu

SAVE, LOAD = 0xC0805650, 0xC0805651
MOST = 16 << 20
PARAMETERS = "/sys/module/vpmu_kvm/parameters/"
libc = ctypes.CDLL(None, use_errno=True)


def case(name, why):
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


def vm_of(pid):
    folder = f"/proc/{pid}/fd"
    (fd,) = [f for f in os.listdir(folder) if os.readlink(f"{folder}/{f}") == "anon_inode:kvm-vm"]
    pidfd = os.pidfd_open(pid)
    vm = libc.syscall(438, pidfd, int(fd), 0)
    if vm < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    os.close(pidfd)
    return vm


class Device:
    def __init__(self, vm):
        self.fd = os.open("/dev/vpmu_kvm", os.O_RDWR)
        self.vm = vm

    def ask(self, command, buffer, size, vm=None, struct_size=128):
        """The error's number or 0, the bytes that it tells, and why."""
        at = ctypes.addressof(buffer) if buffer is not None else 8
        io = bytearray(struct.pack("<IiQQQQ88x", struct_size, self.vm if vm is None else vm, at,
                                   size, 0, 0))
        error = 0
        try:
            fcntl.ioctl(self.fd, command, io)
        except OSError as e:
            error = e.errno
        tells, asked, available = struct.unpack_from("<QQQ", io, 16)
        why = io[40:].split(b"\0")[0].decode()
        return error, tells, f"{why}, {asked} of {available}"

    def save(self):
        error, size, why = self.ask(SAVE, None, 0)
        if error != errno.ENOSPC:
            raise SystemExit(f"SAVE: {errno.errorcode.get(error)}: {why}")
        buffer = ctypes.create_string_buffer(size)
        error, size, why = self.ask(SAVE, buffer, size)
        if error:
            raise SystemExit(f"SAVE: {errno.errorcode[error]}: {why}")
        return buffer.raw

    def load(self, state):
        buffer = ctypes.create_string_buffer(bytes(state), max(len(state), 1))
        error, _, why = self.ask(LOAD, buffer, len(state))
        return error, why


def refusals(device, state):
    """NAME, what is asked for, the error that is due, and a word of the reason."""
    room = ctypes.create_string_buffer(len(state))
    null = os.open("/dev/null", os.O_RDWR)
    section = struct.pack("<IHHII", 77, 1, 1, 0, 0)
    unknown = state[:8] + struct.pack("<II", len(state) + 16, 1 + state[12]) + state[16:] + section
    newer = state[:4] + struct.pack("<I", 2) + state[8:]
    yield "little room", (SAVE, room, len(state) - 1), errno.ENOSPC, ""
    yield "no room", (SAVE, None, len(state)), errno.EFAULT, ""
    yield "no such command", (SAVE + 15, room, 0), errno.ENOTTY, ""
    yield "another struct", (SAVE, room, len(state), None, 120), errno.EINVAL, ""
    yield "no file", (SAVE, room, len(state), 1000), errno.EBADF, "no such file"
    yield "no VM", (LOAD, room, len(state), null), errno.EINVAL, "no file of a VM"
    yield "nothing", (LOAD, room, 0), errno.EINVAL, "0 of 16777216"
    yield "too much", (LOAD, room, MOST + 1), errno.EINVAL, "16777217 of 16777216"
    yield "from nowhere", (LOAD, None, len(state)), errno.EFAULT, ""
    for name, data, error, why in (
            ("zeros", bytes(len(state)), errno.EINVAL, "damaged"),
            ("an unknown mandatory section", unknown, errno.ENOSYS, "not known here, section, 77"),
            ("a newer format", newer, errno.ENOSYS, "version of the format, 2 of 1")):
        yield name, (LOAD, ctypes.create_string_buffer(data, len(data)), len(data)), error, why


def refuse(device, state):
    for name, what, due, words in refusals(device, state):
        error, _, why = device.ask(*what)
        wrong = "" if error == due and words in why else f"{errno.errorcode.get(error)}, {why}"
        if device.save() != state:
            wrong += "; it has changed the state"
        case(f"refused/{name}", wrong)


def damage(device, state, chance):
    """Truncated, and with random bytes: most is refused, and what is loaded is not."""
    wrong, refused = "", 0
    for n in list(range(1, 64)) + [chance.randrange(64, len(state)) for _ in range(100)]:
        if device.load(state[:n])[0] != errno.EINVAL or device.save() != state:
            wrong = f"cut off after {n} bytes"
    case("refused/cut off", wrong)
    wrong = ""
    for n in range(1000):
        bad = bytearray(state)
        for _ in range(chance.choice((1, 1, 2, 8))):
            # Prefer offsets that have data: a state's slots are mostly zeros.
            where = chance.randrange(chance.choice((len(state), 300)))
            bad[where] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
        before = device.save()
        error, why = device.load(bad)
        refused += error in (errno.EINVAL, errno.ENOSYS)
        if error not in (0, errno.EINVAL, errno.ENOSYS, errno.EFAULT):
            wrong = f"{errno.errorcode[error]}: {why}"
        elif error in (errno.EINVAL, errno.ENOSYS) and device.save() != before:
            wrong = f"a state that was refused ({why}) has changed something"
    case("refused/random", wrong or ("" if 300 < refused < 1000 else f"{refused} of 1000"))


def set_parameter(name, value):
    with open(PARAMETERS + name, "w") as f:
        f.write(str(value))


def faults(device, state):
    """The Nth call fails, for every N, while a state is loaded, and while it is saved."""
    wrong, n, lost = "", 0, 0
    size = ctypes.create_string_buffer(len(state))
    while not wrong:
        n += 1
        set_parameter("fail_nth", n)
        error, why = device.load(state)
        with open(PARAMETERS + "fail_calls") as f:
            calls = int(f.read())
        set_parameter("fail_nth", 0)
        if calls < n:
            break
        lost += not error
        if error not in (0, errno.ENOMEM, errno.EFAULT):
            wrong = f"load, call {n}: {errno.errorcode[error]}: {why}"
        elif device.load(state)[0] or device.save() != state:
            wrong = f"load, call {n}: the next one is not right"
    case("faults/load", wrong or ("" if n > 4 and lost > 1 else f"{n} calls, {lost} losses"))
    set_parameter("fail_nth", 1)
    error, _, why = device.ask(SAVE, size, len(state))
    set_parameter("fail_nth", 0)
    case("faults/save", "" if error == errno.ENOMEM and device.save() == state else why)


def main():
    chance, args = random.Random(int(sys.argv[1])), sys.argv[2:]
    with_faults = args[0] == "--faults"
    vpmu = os.environ["VPMU_BUILD"] + "/vpmu"
    with tempfile.TemporaryDirectory() as folder:
        qemu = Qemu(args[with_faults:], folder, 0, None, None)
        device = Device(vm_of(qemu.process.pid))
        error, _, why = device.ask(SAVE, None, 0)
        case("refused/unused", "" if error == errno.ENOENT and "not used" in why else why)
        qemu.ask("cont")
        while not qemu.output().endswith("\n"):
            qemu.ask("query-status")
        time.sleep(0.1)
        busy = [device.ask(SAVE, None, 0)[0], device.load(bytes(16))[0]]
        said = subprocess.run([vpmu, "kvm", "save", str(qemu.process.pid), f"{folder}/none"],
                              capture_output=True, text=True)
        case("refused/running", "" if busy == 2 * [errno.EBUSY] and said.returncode == 125 and
             "stop it first" in said.stderr else f"{busy}, {said}")
        qemu.ask("stop")
        state = device.save()
        error, why = device.load(state)
        case("loaded over itself", "" if not error and device.save() == state else why)
        if with_faults:
            faults(device, state)
        else:
            refuse(device, state)
            damage(device, state, chance)
        error, why = device.load(state)
        case("loaded at last", "" if not error and device.save() == state else why)
        os.close(device.vm)
        qemu.ask("cont")
        status = qemu.process.wait()
        sys.stdout.write(qemu.output())
    return status


sys.exit(main())
