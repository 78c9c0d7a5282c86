# Each target is one script or one cargo call; the scripts say what they do and may be called alone.
#
# PG_CONFIG=PATH    the Postgres to build for (default: see scripts/fetch-postgres.sh)
# DESTDIR=PATH      where `make install` puts its tree (for packages)
# FULL=1            `make demo` with the whole manual
# RAG_EVAL_DATA=DIR corpora for `make bench` in BEIR's format: DIR/scifact, DIR/cranfield; files: DIR/docling-samples
# PARTS='ways …'    what `make bench-quality` measures, and on which sets (default: all)
# SECONDS=N         time for each target of `make fuzz` (default: 60)
# RAG_HOME=DIR      where downloads, private servers and clusters live (default: .local)

SHELL := bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo up down psql install build models deps test test-all smoke soak mutate check fmt clippy lint tidy bench bench-parse bench-quality fuzz clean distclean
.SILENT:

help: ## list the targets
	awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: install ## from nothing to cited answers about the PostgreSQL manual (FULL=1: all of it)
	scripts/demo.sh

up: install ## start a private cluster with rag_ext; the last line is its connection URI
	scripts/cluster.sh up

down: ## stop that cluster
	scripts/cluster.sh down

psql: ## connect to it
	scripts/cluster.sh psql

install: build models ## put library, engine and models where PG_CONFIG's Postgres looks for them
	scripts/install.sh

build: deps ## build a release
	scripts/build.sh >/dev/null

models:
	scripts/fetch-models.sh

# Before what installs them, for tests use one more than the defaults.
all-models: deps
	scripts/fetch-models.sh --all

deps:
	scripts/install-deps.sh

test: all-models install ## set up and run all tests on the default Postgres
	scripts/test.sh crates
	scripts/test.sh server

test-all: test ## and a smoke test on PostgreSQL 15, 16, 17 and 18
	scripts/test.sh smoke 15 16 17 18

smoke: all-models ## a smoke test on the oldest and the newest Postgres (MAJORS='15 16')
	scripts/test.sh smoke $(or $(MAJORS),15 18)

soak: all-models install ## the random suites for hours: a table of what was run (SOAK_…: see scripts/soak.sh)
	scripts/soak.sh

mutate: all-models install ## break the code in twenty ways, and see which tests notice (see tests/mutations.tsv)
	scripts/mutate.sh

check: fmt clippy lint tidy ## formatting, lints, layout rules and the crates' tests
	scripts/fetch-models.sh --all
	scripts/test.sh crates

fmt:
	cargo fmt --all --check

clippy: deps
	scripts/cargo.sh clippy --workspace --all-targets --features rag_ext/@pg -- --deny warnings
	# In the profile of scripts/build.sh, which takes llama.cpp from here then.
	scripts/cargo.sh clippy --release --package rag_llm --features llama -- --deny warnings

lint: deps
	scripts/lint.sh

tidy: deps
	scripts/cargo.sh test --package rag_tests --test tidy

fuzz: ## run each fuzz target for SECONDS=60, two at once
	RAG_FUZZ_SECONDS=$(or $(SECONDS),$(RAG_FUZZ_SECONDS),60) scripts/fuzz.sh

bench: install ## quality and cost tables (parsers and quality need RAG_EVAL_DATA)
	scripts/bench.sh

bench-parse: deps
	scripts/bench.sh parse

bench-quality: install
	scripts/bench.sh quality $(PARTS)

clean: ## remove what was built
	cargo clean
	. scripts/prelude.sh && rm -rf "$$RAG_HOME/build"

distclean: down clean ## and everything downloaded, and the cluster's data
	. scripts/prelude.sh && rm -rf "$$RAG_HOME"
