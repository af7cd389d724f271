#!/usr/bin/env bash
# Makes .venv and everything `tidemark` needs, Java included. Says nothing when there is nothing to do;
# run it again after an interruption and it puts things right.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LOCKS=(requirements.lock requirements-dev.lock)
readonly STAMP=.venv/.tidemark-setup
readonly UNFINISHED=.venv/.tidemark-setup-unfinished
readonly QUICK_LOG=.venv/.tidemark-quick.log
readonly PYTHONS=(python3.13 python3.12 python3.11 python3)
readonly MINIMUM_JAVA=17

say() { printf '%s\n' "$*" >&2; }
fail() { say "setup: $*"; exit 1; }

# What the environment was made from. A virtual environment holds its own path, so a moved clone differs too.
inputs() { pwd; cat "${LOCKS[@]}" src/tidemark/jars.lock src/tidemark/data_plane/java/*.java pyproject.toml scripts/setup.sh; }

up_to_date() {
    [ -f "$STAMP" ] && [ ! -e "$UNFINISHED" ] && [ -x .venv/bin/tidemark ] \
        && inputs | cmp -s - "$STAMP" \
        && .venv/bin/python -c '' 2>/dev/null \
        && command -v "$(java_command)" >/dev/null
}

# Spark prefers JAVA_HOME to the PATH, so this does too.
java_command() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi; }

java_major() {
    local version
    version=$("$(java_command)" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p' | head -n 1) || return 0
    echo "$version"
}

java_is_new_enough() {
    local major
    major=$(java_major)
    [ -n "$major" ] && [ "$major" -ge "$MINIMUM_JAVA" ]
}

ensure_java() {
    if java_is_new_enough; then return; fi
    if [ -n "${JAVA_HOME:-}" ]; then
        fail "JAVA_HOME is $JAVA_HOME, which has no Java $MINIMUM_JAVA or newer: unset it or set it to one, then run again"
    fi
    case "$(uname -s)" in
        Darwin) fail "Java $MINIMUM_JAVA or newer is missing. Install it, then run again:
  brew install openjdk@17
  export JAVA_HOME=\"\$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home\"" ;;
    esac
    if command -v apt-get >/dev/null; then install_java_with_apt
    elif command -v dnf >/dev/null; then fail "Java $MINIMUM_JAVA or newer is missing. Install it, then run again:
  sudo dnf install -y java-17-openjdk-headless"
    else fail "Java $MINIMUM_JAVA or newer is missing. Install a JRE (OpenJDK 17 or newer) with your package manager, then run again"
    fi
}

install_java_with_apt() {
    if [ "$(id -u)" -ne 0 ]; then fail "Java $MINIMUM_JAVA or newer is missing. Install it, then run again:
  sudo apt-get update && sudo apt-get install -y default-jre-headless"
    fi
    say "setup: installing Java"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || say "setup: apt-get update failed; trying with the package lists that are there"
    apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >&2 \
        || apt-get install -y -qq --no-install-recommends default-jre-headless >&2 \
        || fail "apt-get could not install Java (see above)"
    hash -r
    java_is_new_enough || fail "the Java that apt-get installed is older than $MINIMUM_JAVA: install OpenJDK 17 or newer"
}

# A name on the PATH proves little (it may be a shim without a version behind it), so each candidate is run.
find_python() {
    local name
    for name in "${PYTHONS[@]}"; do
        if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$name" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    fail "no Python 3.11 or newer with the venv module was found (tried: ${PYTHONS[*]}). Install one, for example:
  sudo apt-get install -y python3 python3-venv"
}

venv_is_usable() { [ ! -e "$UNFINISHED" ] && .venv/bin/python -m pip --version >/dev/null 2>&1 && venv_is_here; }

venv_is_here() { [ ! -f "$STAMP" ] || [ "$(head -n 1 "$STAMP")" = "$(pwd)" ]; }

# pip takes a half-written package for an installed one, so an interrupted environment is made anew.
ensure_venv() {
    local python
    if venv_is_usable; then return; fi
    python=$(find_python)
    say "setup: creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

pip_install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input "$@"; }

# Spark comes as source: building it and Tidemark with the locked setuptools keeps every version pinned.
install_packages() {
    say "setup: installing the packages of ${LOCKS[*]} (a few minutes the first time: Spark is 450 MB)"
    pip_install "$(grep '^setuptools==' requirements.lock)"
    pip_install --no-build-isolation "${LOCKS[@]/#/--requirement=}"
    pip_install --no-build-isolation --no-deps --editable .
}

fetch_jars() {
    say "setup: fetching the jars of src/tidemark/jars.lock (50 MB the first time)"
    .venv/bin/python -m tidemark.jars || fail "the jars could not be fetched (see above)"
}

# Only speed depends on these, so a Java that cannot make them does not stop the set-up. The archives come last: they
# fit the jars that were there when they were made.
make_jobs_quick() {
    quicken data_plane.make_java_classes "jobs will write more slowly"
    say "setup: making archives of Spark's and Kafka's classes, so that both start quickly (half a minute, 240 MB)"
    quicken data_plane.make_class_archive "jobs will start more slowly"
    quicken testing.make_broker_archive "brokers for a laptop will start more slowly"
}

quicken() {
    .venv/bin/python -m "tidemark.$1" >/dev/null 2>"$QUICK_LOG" \
        || say "setup: $1 failed ($(tail -n 1 "$QUICK_LOG")); $2"
    rm -f "$QUICK_LOG"
}

# Python keeps compiled modules by itself, but not where it is told to leave no files behind; commands then compile
# everything anew each time they start.
compile_modules() {
    .venv/bin/python -m compileall -q src || say "setup: not all of src could be compiled; commands will start more slowly"
}

main() {
    if up_to_date; then compile_modules; return; fi
    ensure_java
    ensure_venv
    touch "$UNFINISHED"
    install_packages
    compile_modules
    fetch_jars
    make_jobs_quick
    inputs >"$STAMP"
    rm "$UNFINISHED"
    say "setup: done; .venv/bin/tidemark is ready"
}

main "$@"
