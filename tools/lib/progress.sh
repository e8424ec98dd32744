# Long commands of tools/demo and tools/test, so that they can be followed: what is built or run, how
# far it is, for how long; and when a build fails, the compiler's errors and what to do. Sourced
# after setup.sh, not run. On a terminal one line is rewritten; elsewhere a line comes now and then.
# These lines go to stderr: what a program prints stays its own.
# shellcheck shell=bash
# shellcheck disable=SC2154 # setup.sh sets what is used here

# Where the whole output of each command is kept.
logs="$root/.build/logs"
seconds_between_lines=30

# followed <title> <how far> <log> <command ...>: runs the command with its output in the log and says
# how it gets on. `how far` is a function that reads that from the log, such as build_step.
followed() {
    local title="$1" how_far="$2" log="$3" reporter status=0
    shift 3
    mkdir -p "$logs" 2>/dev/null || true
    : >"$log" || return 1
    if [ ! -t 2 ]; then say "$title ..." >&2; fi
    # The command stays in front, so that Control-C reaches it; the reporter sees when it is alone.
    report "$title" "$how_far" "$log" >&2 &
    reporter=$!
    "$@" </dev/null >"$log" 2>&1 || status=$?
    # Not by a signal that it could answer: a child just born would run the traps of its parent.
    kill -KILL "$reporter" 2>/dev/null || true
    wait "$reporter" 2>/dev/null || true
    if [ -t 2 ]; then printf '\r\033[K' >&2; fi
    return "$status"
}

report() { # report <title> <how far> <log>
    local started=$SECONDS told=$SECONDS text columns=80
    if [ -t 2 ]; then
        columns="$(stty size <&2 2>/dev/null | sed -n 's/^[0-9]* //p')"
        [ "${columns:-0}" -ge 20 ] || columns=80
    fi
    while sleep 1 && kill -0 $$ 2>/dev/null; do
        text="$1: $("$2" "$3" || true)"
        text="${text%: }, $((SECONDS - started)) s"
        if [ -t 2 ]; then
            printf '\r\033[K%s' "${text:0:$((columns - 1))}"
        elif [ $((SECONDS - told)) -ge "$seconds_between_lines" ]; then
            told=$SECONDS
            say "$text"
        fi
    done
}

# The newest line of a build in plain words, such as "[34/120] compiled VarveEngine". The build names a
# part when it is done with it.
build_step() {
    tail -n 60 "$1" 2>/dev/null | tr '\r' '\n' | sed -n -E \
        -e 's/^(\[[0-9]+\/[0-9]+\]) (Compiling|Emitting module) ([^ ]+).*/\1 compiled \3/p;t' \
        -e 's/^(\[[0-9]+\/[0-9]+\]) Linking ([^ ]+).*/\1 linked \2/p;t' \
        -e 's/^(\[[0-9]+\/[0-9]+\]) .*/\1/p;t' \
        -e 's/^Fetching .*\/([^\/ ]+)( from cache)?$/downloading \1/p;t' \
        -e 's/^(Computing version|Creating working copy|Updating) .*/finding the versions of packages/p;t' \
        -e 's/^(Planning build|Building for).*/preparing/p;t' \
        -e 's/^Another instance of SwiftPM.*/waiting for another build in the same folder/p' |
        tail -n 1
}

# How many tests have ended, of those that have begun: nearly all begin at once.
test_step() {
    local begun ended
    begun="$(test_lines '^◇ Test .* started' "$1")"
    ended="$(test_lines '^(✔|✘) Test .* (passed|failed) after' "$1")"
    [ "$begun" = 0 ] || say "$ended of $begun tests have ended"
}

# Counts lines about tests: neither about one of a test's cases nor about the whole run.
test_lines() { # test_lines <pattern> <log>
    { grep -aE "$1" "$2" 2>/dev/null || true; } | grep -avcE '^(◇|✔|✘) Test (case|run) ' || true
}

# Nothing can be said but the time.
no_step() { :; }

# What the compiler or the linker complained about, or the last lines when nothing looks like it.
errors_of() { # errors_of <log>
    { grep -aE 'error:|Fatal error|undefined reference|undefined symbol' "$1" | awk '!seen[$0]++' |
        grep -a . || tail -n 40 "$1"; } | head -n 40
}

# What to do about a build that failed, where the reason can be seen.
advice_on() { # advice_on <log>
    if grep -qaiE 'no space left on device|disk quota exceeded' "$1"; then
        say "The disk is full: a build wants up to 2 GB in $root/.build. Make room and start again."
    elif grep -qaE "lz4\.h' file not found|cannot find -llz4|unable to find library -llz4|library '?lz4'? not found" "$1"; then
        local command
        command="$(lz4_command)"
        say "liblz4 is missing. Install it with its headers${command:+: $command}"
    elif grep -qaiE 'could not resolve host|failed to clone|failed to fetch|unable to access|could not connect|name resolution|connection (timed out|refused)' "$1"; then
        say "A package could not be downloaded. The first build needs the network, for what it fetches from"
        say "github.com; behind a proxy set https_proxy. Start again when it is there."
    elif grep -qaE 'due to signal 9|signal SIGKILL|error: Killed|out of memory' "$1"; then
        say "The compiler was ended from outside, most likely for want of memory: close other programs, and start again."
    elif grep -qaE 'is using Swift tools version|unsupported Swift tools version' "$1"; then
        say "This Swift is too old. Install Swift $swift_needed or newer: https://www.swift.org/install"
    elif grep -qaE "no such module|compiled with a different|module file .* (out of date|was built)|malformed" "$1"; then
        say "What was built before may not fit this toolchain: remove $root/.build and start again."
    else
        say "If you have changed nothing, this is a bug: open an issue with that log and 'swift --version'."
    fi
}

# Ends the program with what a failed build said, and what to do.
build_failed() { # build_failed <what failed> <log>
    {
        say "$1:"
        errors_of "$2" | sed 's/^/    /'
        say "The whole log: $2"
        advice_on "$2"
    } >&2
    exit 1
}
