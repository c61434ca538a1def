# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""vpmu run on a terminal: what a person at the keyboard sees and does."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

VPMU = sys.argv[1]


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, argv, rows=33, columns=101, stdout=None):
        self.text = b""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            self.size(rows, columns, 0)
            if stdout:
                os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
            os.execv(argv[0], argv)

    def size(self, rows, columns, fd=None):
        fcntl.ioctl(self.fd if fd is None else fd, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return False
            try:
                self.text += os.read(self.fd, 65536)
            except OSError:
                break
        return bool(re.search(pattern, self.text))

    def type(self, data):
        os.write(self.fd, data)

    def status(self, seconds=60):
        self.wait_for(rb"\A\Z.", seconds)  # to the end
        end = time.monotonic() + 5
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def case(name, good, why):
    print("ok " + name if good else "not ok %s: %r" % (name, why), flush=True)


def run(script, **more):
    return Terminal([VPMU, "run", "--", "sh", "-c", script], **more)


def sizes():
    t = run("stty size; tty; test -t 0 && test -t 1 && test -t 2 && echo all; "
            "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.1; done")
    t.wait_for(b"ready")
    case("tty-size", b"33 101\r\n" in t.text, t.text)
    case("tty-is-one", b"all\r\n" in t.text and b"/dev/pts/" in t.text, t.text)
    t.size(20, 70)
    case("tty-resized", t.wait_for(b"20 70"), t.text)
    case("tty-status", t.status() == 5, t.text)


def keys():
    t = run("echo ready; read line; echo \"<$line>\"; "
            "trap 'echo interrupted; exit 6' INT; echo again; sleep 1000 & wait")
    t.wait_for(b"ready\r\n")
    t.type(b"hello\x7f!\r")
    case("tty-line-editing", t.wait_for(b"<hell!>\r\n"), t.text)
    case("tty-one-echo", t.text.count(b"hell") == 2, t.text)
    t.wait_for(b"again\r\n")
    t.type(b"\x03")
    case("tty-ctrl-c", t.wait_for(b"interrupted\r\n"), t.text)
    case("tty-ctrl-c-status", t.status() == 6, t.text)


def end_of_file():
    t = run("echo ready; cat; echo done")
    t.wait_for(b"ready\r\n")
    t.type(b"line\r\x04")
    case("tty-ctrl-d", t.wait_for(b"done\r\n"), t.text)
    case("tty-end", t.status() == 0, t.text)


def job_control():
    shell = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"])
    shell.type(b"PS1='%> '; stty -echo; echo sta''rt\r")
    shell.wait_for(b"start\r\n")
    # Not in front: a dash that is stopped between vfork and exec hangs, here as anywhere.
    shell.type(b"%s run -- sh -c 'sleep 2 & echo go''ing; wait; echo e''nd'\r" % VPMU.encode())
    shell.wait_for(b"going\r\n")
    shell.type(b"\x1a")
    case("tty-ctrl-z", shell.wait_for(b"Stopped", 20), shell.text)
    shell.type(b"fg\r")
    case("tty-fg", shell.wait_for(rb"end\r\n(.|\n)*%> ", 30), shell.text)
    shell.text = b""
    shell.type(b"stty -a; echo sta''tus $?\r")
    shell.wait_for(b"status 0")
    case("tty-restored", re.search(rb"[^-]icanon", shell.text) and
         re.search(rb"[^-]opost", shell.text), shell.text)
    shell.type(b"exit\r")
    shell.status()


def redirected():
    name = "terminal.out"
    t = run("test -t 1 || echo no tty; echo to stderr >&2; test -t 2 && echo err tty",
            stdout=name)
    t.status()
    with open(name, "rb") as f:
        out = f.read()
    case("tty-stdout-elsewhere", out == b"no tty\nerr tty\n", out)
    case("tty-stderr-stays", t.text == b"to stderr\r\n", t.text)


def raw_bytes():
    t = run("stty raw -echo; printf 'ready\\n'; head -c 256 | od -An -tx1 | tr -d ' \\n'; "
            "echo; printf '\\001\\377\\r\\n\\0x'")
    t.wait_for(b"ready\n")
    t.type(bytes(range(256)))
    case("tty-raw-in", t.wait_for(bytes(range(256)).hex().encode()), t.text)
    t.status()
    case("tty-raw-out", t.text.endswith(b"\x01\xff\r\n\0x"), t.text[-20:])


sizes()
keys()
end_of_file()
job_control()
redirected()
raw_bytes()
