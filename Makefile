# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The verbs of the project; Meson and the scripts named here do the work.

BUILD ?= build
TESTS ?=
KUT ?=
KERNEL ?=
export VPMU_BUILD := $(abspath $(BUILD))
# make ... QEMU=10.0: another release of qemu/VERSION. Others' QEMU in the environment is a program.
ifeq ($(origin QEMU),command line)
export VPMU_QEMU_RELEASE := $(QEMU)
endif

NINJA = ninja -C $(BUILD) --quiet

all: $(BUILD)/build.ninja
	@$(NINJA)

$(BUILD)/build.ninja:
	@command -v meson ninja cc >/dev/null || tools/setup
	@meson setup $(BUILD) >/dev/null || { meson setup $(BUILD); exit 1; }

setup:
	@tools/setup

demo:
	@tools/demo

check:
	@tests/run $(TESTS)

check-fast:
	@tests/run --fast $(TESTS)

# Static checks, which run no code; the table of lib/'s sizes and stack.
lint: all
	@tests/run --fast style headers module lint
	@tests/stack $(BUILD)

# Build each commit from BASE on; with TESTS=PATTERN run those tests in it.
check-commits:
	@tests/commits $(or $(BASE),origin/main) $(TESTS)

soak:
	@SOAK=1 tests/run $(or $(TESTS),t-kvm t-attack t-crowd t-vmx t-exact t-pv t-nested t-lbr t-pebs t-sample t-repeat t-docs t-dmesg t-told t-contention t-v6 t-ci t-bundle t-kernels t-tools)

# Tests that need a real KVM: this machine's own, and one in a guest.
check-kvm:
	@tests/run kvm-native t-kvm t-attack t-nested
	@SOAK=1 tests/run t-kvm-arch t-nested
	@VPMU_QEMU=$$(qemu/build) tests/kvm-selftests

# Install the packages in a clean Debian: a chroot from the mirror that apt knows.
check-deb: all
	@tests/deb

# The series for Linux and for QEMU: git am on clean trees, compiled, KVM's run; QEMU's patch by patch.
check-upstream: all
	@linux/build --check
	@UPSTREAM=1 tests/run t-linux
	@tests/upstream $(RELEASE)

# Run make demo and the tests in a clean chroot of each SUITE; FULL=1: all tests; SOAK=TESTS: those, too.
check-chroot:
	@tests/chroot $(SUITE)

# Move a running guest MIGRATIONS times from one QEMU to the next.
check-migration: all
	@MIGRATIONS=$(or $(MIGRATIONS),200) tests/vm/t-migrate.sh

# Coverage of lib/ by the unit tests; the last line is in percent of all branches.
coverage:
	@tests/coverage $(BUILD)/coverage

# Run hostile guests on a QEMU with sanitizers, and the modules under a kernel with KASAN and
# lockdep; each takes minutes to build.
check-sanitized: all
	@tests/sanitized $(KERNEL)

check-kut:
	@tests/kut "$(KUT)"

bench: all
	@bench/run

fuzz: all
	@fuzz/run

qemu:
	@qemu/build

modules:
	@kvm/module/build
	@guest/build

install: all
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet

bundle: all
	@tools/bundle

deb: all
	@tools/deb

clean:
	rm -rf $(BUILD)

help:
	@echo 'make              library and tools, in $(BUILD)/; no network'
	@echo 'make demo         perf in a guest, from scratch; installs and builds what it needs'
	@echo 'make check        all tests, with their set-up   (TESTS=PATTERN: only matching files)'
	@echo 'make check-fast   the tests that need no guest'
	@echo 'make lint         clang-tidy, sparse, shellcheck, codespell, headers; sizes and stack of lib/'
	@echo 'make check-commits  build each commit from BASE=origin/main on'
	@echo 'make check-kvm    the PMUs on real KVMs: this machine'"'"'s, if it has one, and nested ones'
	@echo 'make check-migration  move a guest that counts and samples, MIGRATIONS=N times (200)'
	@echo 'make soak         the long form of make check: both host kernels, the long fuzz'
	@echo 'make check-deb    the packages, installed in a clean Debian (root, network)'
	@echo 'make check-chroot  make demo and check-fast in a clean Debian, SUITE=bookworm|trixie (root, network)'
	@echo 'make check-sanitized  hostile guests on a QEMU with ASan and UBSan; the modules under a kernel'
	@echo '                  with KASAN and lockdep (long; KERNEL=qemu|6.1/kasan|6.12/kasan: one of them)'
	@echo 'make check-upstream  the series for QEMU and Linux on clean trees; an hour'
	@echo 'make check-kut    kvm-unit-tests, KUT=DIR a checkout'
	@echo 'make coverage     the coverage of lib/ by the unit tests'
	@echo 'make bench        the cost of counting, beside the peers, and a page of it in $(BUILD)/bench/'
	@echo 'make fuzz         random accesses against the reference model'
	@echo 'make qemu         our QEMU, into the cache; here and above QEMU=10.0: that release of it'
	@echo 'make modules      the kernel modules'
	@echo 'make install      install to DESTDIR and the prefix that meson setup was given'
	@echo 'make bundle       vpmu with all that it needs, for any Linux, in $(BUILD)/bundle/'
	@echo 'make deb          Debian packages, in $(BUILD)/deb/'
	@echo 'make setup        install the Debian packages that all this needs (root)'

.PHONY: all setup demo check check-fast lint check-commits check-kvm check-migration check-sanitized soak coverage check-kut bench fuzz qemu modules install bundle deb check-deb check-chroot check-upstream clean help
