# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The verbs; the work is done by Meson and the scripts named here.

BUILD ?= build
TESTS ?=
KUT ?=
export VPMU_BUILD := $(abspath $(BUILD))

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

clean:
	rm -rf $(BUILD)

help:
	@echo 'make              library and tools, in $(BUILD)/; no network'
	@echo 'make demo         from nothing to perf in a guest; installs and builds what it needs'
	@echo 'make check        every test, with its set-up   (TESTS=PATTERN: only matching files)'
	@echo 'make check-fast   the tests that need no guest'
	@echo 'make check-kut    kvm-unit-tests, KUT=DIR a checkout'
	@echo 'make bench        the cost of counting, beside the peers'
	@echo 'make fuzz         random accesses against the reference model'
	@echo 'make qemu         our QEMU, into the cache'
	@echo 'make modules      the kernel modules'
	@echo 'make install      to DESTDIR and the prefix that meson setup was given'
	@echo 'make setup        the Debian packages that all this needs (root)'

.PHONY: all setup demo check check-fast check-kut bench fuzz qemu modules install clean help
