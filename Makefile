# What one does with a clone. `make` alone lists it.

# rustup's default place, in case the shell has not been told of it yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

# The lock file decides which dependencies are built.
CARGO_BUILD_FLAGS := --locked

# Where cargo leaves what it builds, whichever directory it is called in.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export CARGO_TARGET_DIR := $(TARGET)

# What the commands make for the package.
PACKAGE := $(TARGET)/release/package

# The lab makes network namespaces, which only root may. It is told what is
# built already, in this profile: behind sudo there may be no cargo.
as-root = $(if $(filter-out 0,$(shell id -u)),sudo) env FAIRBAT_BIN=$(TARGET)/$(1)/fairbat

# Static binaries are linked against musl.
STATIC := $(shell uname -m)-unknown-linux-musl

# What measures: a workspace of its own, which builds into the same directory.
LAB := tests/lab

# What has no test to run, in the workspace of this directory.
lint = set -ex; cd $(1); cargo fmt --all --check; \
	cargo clippy $(CARGO_BUILD_FLAGS) --workspace --all-targets -- -D warnings; \
	RUSTDOCFLAGS=-Dwarnings cargo doc $(CARGO_BUILD_FLAGS) --workspace --no-deps

# The commands that tests start are built before: a compiler beside them would disturb them.
test lab-test: export FAIRBAT_BUILT := 1

# What `make release` leaves.
RELEASE := $(TARGET)/release-files

# What bench runs; quick variants are as long whatever the matrix. First what
# every machine allows, then what takes the observer, and last what takes
# congestion controls of ours.
MATRICES := peers run run-uploads run-nights lane lane-deadlines trust overhead lever deadlines deadline-changes $(if $(QUICK),,deadlines-long) \
	yielding yielding-vulture yielding-fairness yielding-robust yielding-cost yielding-unseen \
	bottlenecks-bbr bottlenecks bottlenecks-http3 bottlenecks-more bottlenecks-unseen coupling weights robust \
	$(if $(QUICK),,robust-hour) deadlines-controllers deadlines-served \
	deadlines-bottlenecks cdg sender-weights \
	sender-alone sender-released sender-constant sender-steps ctrltcp \
	dalbe-simulated dalbe-fig10 dalbe dalbe-beyond dalbe-load \
	agent-push agent-lane fleet fleet-equal fleet-faults

# What `lab multipath` measures.
PATH_PLANS := two-paths paths-come-and-go paths-deadline

# What `lab programs` runs and serves by, beside what the tests need.
PROGRAMS := apt-ftparchive borg fcgiwrap git go hf javac lftp npm rsync scp sshd

# How the lab exits where the machine does not allow what was asked for.
CANNOT := 77

FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
FUZZ_SECONDS ?= 300

.DEFAULT_GOAL := help
.PHONY: help demo test lab-test crash lint bench deb release fuzz deps deny cargo-deb cargo-deny cargo-sbom cargo-fuzz

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## download by a deadline beside other traffic on an emulated link: about a minute
	@.ci/deps demo
	cargo build $(CARGO_BUILD_FLAGS) --profile quick -p fairbat-cli
	cd $(LAB) && cargo build $(CARGO_BUILD_FLAGS) --profile quick -p lab-run --no-default-features
	@$(call as-root,quick) $(TARGET)/quick/demo

test: ## build and check the commands and their libraries, as CI does: some minutes
	@.ci/deps test
	@$(call lint,.)
	cargo build $(CARGO_BUILD_FLAGS) --workspace --lib --bins --tests
	cargo test $(CARGO_BUILD_FLAGS) --workspace --doc
	NEXTEST_TEST_THREADS=$${NEXTEST_TEST_THREADS:-$$(expr 8 '*' $$(nproc))} \
		$(TARGET)/python/bin/cargo-nextest nextest run $(CARGO_BUILD_FLAGS) --workspace --lib --bins --tests
	@grep -ho 'SKIPPED.*' target/nextest/default/tests.xml || true

lab-test: ## check the lab, which measures, before `make bench`; CI does when it has changed
	@.ci/deps test
	@$(call lint,$(LAB))
	cargo build $(CARGO_BUILD_FLAGS) -p fairbat-cli -p fairbat-agent -p fairbat-s3-server
	cd $(LAB) && RUST_TEST_THREADS=$$(expr 4 '*' $$(nproc)) cargo test $(CARGO_BUILD_FLAGS) --workspace
	@[ -n "$$(git status --porcelain)" ] || [ "$$(id -u)" != 0 ] || git rev-parse HEAD >.ci/lab-passed

crash: ## kill what moves files, and fill its disks, at hundreds of random moments: half an hour
	@.ci/deps test
	cargo test $(CARGO_BUILD_FLAGS) -p fairbat-tests -- --ignored --nocapture --test-threads 1 kill crash

lint: deps cargo-deny ## formatting, clippy, documentation, licences of dependencies
	@.ci/deps test
	@$(call lint,.)
	@$(call lint,$(LAB))
	@$(MAKE) --no-print-directory deny

bench: ## measure all figures again, some hours, into tests/lab/results (QUICK=1: minutes, into target)
	@.ci/deps test faketime iperf3 libtorrent pip restic trickle $(PROGRAMS)
	cargo build $(CARGO_BUILD_FLAGS) --release -p fairbat-cli -p fairbat-agent -p fairbat-s3-server
	cd $(LAB) && cargo build $(CARGO_BUILD_FLAGS) --release
	$(TARGET)/release/bench $(if $(QUICK),--quick)
	$(TARGET)/release/bench agent-scale $(if $(QUICK),--quick)
	$(TARGET)/release/bench hold $(if $(QUICK),--quick)
	$(TARGET)/release/bench fleet-scale $(if $(QUICK),--quick)
	$(TARGET)/release/bench mirrors $(if $(QUICK),--quick)
	$(if $(QUICK),,$(TARGET)/release/lab numerical && $(TARGET)/release/lab tuning)
	@$(call as-root,release) $(TARGET)/release/bench http3 $(if $(QUICK),--quick)
	@$(call as-root,release) $(TARGET)/release/lab calibrate
	for plan in $(PATH_PLANS); do \
		$(call as-root,release) $(TARGET)/release/lab multipath $$plan --jobs 4 \
			$(if $(QUICK),--quick,--output tests/lab/results) || exit; \
	done
	@left=; \
	for words in $(MATRICES:%=matrix:%) sender-cost programs programs:--through-proxy; do \
		words=$$(echo "$$words" | tr : ' '); status=0; \
		$(call as-root,release) $(TARGET)/release/lab $$words $(if $(QUICK),--quick) || status=$$?; \
		case $$status in \
		0) ;; \
		$(CANNOT)) left="$$left, lab $$words" ;; \
		*) exit $$status ;; \
		esac; \
	done; \
	[ -z "$$left" ] || echo "left out, for this machine does not allow it (see above): $${left#, }" >&2

deb: deps cargo-deb ## build the Debian package, into target/debian
	@.ci/deps build dpkg-shlibdeps
	@rm -f $(TARGET)/debian/*.deb
	cargo build $(CARGO_BUILD_FLAGS) --release -p fairbat-cli -p fairbat-agent
	@rm -rf $(PACKAGE)
	@mkdir -p $(PACKAGE)/bash $(PACKAGE)/zsh $(PACKAGE)/fish
	@set -e; for command in fairbat fairbat-agent; do \
		made=$(TARGET)/release/$$command; \
		$$made man --dir $(PACKAGE)/man; \
		$$made completions bash >$(PACKAGE)/bash/$$command; \
		$$made completions zsh >$(PACKAGE)/zsh/_$$command; \
		$$made completions fish >$(PACKAGE)/fish/$$command.fish; \
	done
	@gzip -9n $(PACKAGE)/man/*
	cargo deb $(CARGO_BUILD_FLAGS) --no-build -p fairbat-agent

release: deb cargo-sbom ## static binaries, the Debian package, SBOMs and checksums, into target/release-files
	@.ci/deps build musl
	@rustup target list --installed | grep -qx $(STATIC) || rustup target add $(STATIC)
	CARGO_PROFILE_RELEASE_STRIP=symbols .ci/musl $(TARGET)/musl-headers \
		cargo build $(CARGO_BUILD_FLAGS) --release --target $(STATIC) \
		-p fairbat-cli -p fairbat-agent --features fairbat-cli/vendored,fairbat-agent/vendored
	@rm -rf $(RELEASE)
	@mkdir -p $(RELEASE)
	@cp $(TARGET)/$(STATIC)/release/fairbat $(TARGET)/$(STATIC)/release/fairbat-agent $(RELEASE)
	@cp $(TARGET)/debian/fairbat_*.deb $(RELEASE)
	cargo sbom --cargo-package fairbat-cli >$(RELEASE)/fairbat.spdx.json
	cargo sbom --cargo-package fairbat-agent >$(RELEASE)/fairbat-agent.spdx.json
	@cd $(RELEASE) && sha256sum * >SHA256SUMS && cat SHA256SUMS

# A closed connection is an error for a target, and no signal that ends it.
fuzz: cargo-fuzz ## fuzz what reads foreign input, each target for five minutes (FUZZ_SECONDS=N)
	@trap '' PIPE; set -e; for target in $(FUZZ_TARGETS); do \
		echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
		cargo +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) -timeout=60 \
			-print_final_stats=1; \
	done

deps: ## install the Debian packages that a build needs and that are missing
	@.ci/deps build

# Known vulnerabilities are not looked up here: the answer changes from day to
# day without a change of the code. `cargo deny check advisories` asks.
deny:
	cargo deny check licenses bans sources
	cargo deny --manifest-path $(LAB)/Cargo.toml check --config deny.toml licenses bans sources

cargo-deny:
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny

cargo-deb:
	@command -v cargo-deb >/dev/null || cargo install --locked cargo-deb

cargo-sbom:
	@command -v cargo-sbom >/dev/null || cargo install --locked cargo-sbom

cargo-fuzz:
	@.ci/deps build c++
	@rustup toolchain list | grep -q '^nightly' || rustup toolchain install nightly --profile minimal
	@command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
