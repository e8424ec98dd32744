# The parts of tools/test: each is followed while it runs, timed, counted and reported in one line; a
# failure shows what went wrong, where the whole log is, and what to do. Sourced after setup.sh and
# progress.sh, not run.
# shellcheck shell=bash
# shellcheck disable=SC2154 # setup.sh and progress.sh set what is used here

passed=0
failed=0
skipped=0
# What runs now writes here; the log of a failure is kept in `logs`, under the name of its part.
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
log="$work/log"
# Of the command that `follow` ran last: its exit status, and the seconds that it took.
status=0
took=0
# The seconds that building took for what `check` runs next; said once.
built=""
# What came of the last part: passed, failed or skipped.
# shellcheck disable=SC2034 # tools/test reads it
outcome=""

# follow <title> <how far> <command ...>: sets `status` and `took`. progress.sh has the functions for
# `how far`.
follow() {
    local title="$1" how_far="$2" started=$SECONDS
    shift 2
    status=0
    followed "$title" "$how_far" "$log" "$@" || status=$?
    took=$((SECONDS - started))
}

part_passed() { # part_passed <part> <what was done> [<tests>] [<what follows the times>]
    outcome=passed
    passed=$((passed + ${3:-1}))
    say "passed   $1: $2 (${built:+build $built s, }run $took s)${4:-}"
    built=""
}

part_skipped() { # part_skipped <part> <reason>
    outcome=skipped
    skipped=$((skipped + 1))
    say "skipped  $1: $2"
}

# part_failed <part> <reason> <function that shows what went wrong> [<tests>]: errors_of is for builds.
part_failed() {
    local kept
    kept="$logs/$(say "$1" | tr -cs 'a-zA-Z0-9\n' '-').log"
    outcome=failed
    failed=$((failed + ${4:-1}))
    built=""
    say "failed   $1: $2"
    "$3" "$log" | indented
    if mkdir -p "$logs" && cp "$log" "$kept"; then say "The whole log: $kept" | indented; fi
    if [ "$3" = errors_of ]; then advice_on "$log" | indented; fi
}

indented() { sed 's/^/         /'; }

# Tests that failed: what they said, not the hundreds of lines before.
tests_excerpt() {
    { grep -aE 'error:|^(✘|↳)|Fatal error|Crash|signal' "$1" | grep -av '^↳ T' || tail -n 40 "$1"; } |
        head -n 60
}

# A program that failed: all that it said, since it says how to do it again.
program_excerpt() { tail -n 200 "$1"; }

# check <part> <what was done> <why it fails> <command ...>: a program that is one test. `what was
# done` is a function that reads that from the log. Lines "SKIPPED ..." are skips of the program;
# with status 77 it did nothing else. `how_far`, when set, is a function as `follow` takes it.
check() {
    local part="$1" what_was_done="$2" reason="$3" line
    shift 3
    outcome=""
    follow "running $part" "${how_far:-no_step}" "$@"
    while IFS= read -r line; do
        part_skipped "$part" "${line#SKIPPED }"
    done < <(grep -a '^SKIPPED ' "$log" || true)
    if [ "$status" = 0 ]; then
        part_passed "$part" "$("$what_was_done" "$log")"
    elif [ "$status" != 77 ] || [ "$outcome" != skipped ]; then
        part_failed "$part" "$reason (status $status)" program_excerpt
    fi
}

one_test() { say "1 tests"; }

# Whether everything that a package depends on is here or can be fetched.
has_dependencies() {
    follow "finding what ${1##*/} depends on" build_step swift package --package-path "$1" "${scratch[@]}" resolve
    [ "$status" = 0 ]
}

# Why not.
missing_dependency() { grep -am 1 'error:' "$log" || say "cannot be resolved"; }

# Reads a number of the report: attribute <file> <tests|failures|skipped>. `tests` leaves skips out.
attribute() {
    sed -n "s/.*<testsuite[^>]* $2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1
}

# The tests that a report calls failed, as --filter wants them.
failed_tests() { # failed_tests <report>
    awk '
        /<testcase / {
            suite = name = $0
            sub(/.* classname="/, "", suite); sub(/".*/, "", suite)
            sub(/.* name="/, "", name); sub(/[("].*/, "", name)
        }
        /<failure/ && !seen[suite "/" name]++ { text = text (text == "" ? "" : "|") suite "/" name }
        END { print text }' "$1"
}

# The command that runs the failed tests again.
say_again() { # say_again <report> <options of swift test ...>
    local names command
    names="$(failed_tests "$1")"
    [ -n "$names" ] || return 0
    shift
    command="$(printf '%q ' swift test "$@" --disable-xctest)"
    command="${VARVE_OPTIMIZED:+VARVE_OPTIMIZED=1 }${command% }"
    if [ -n "$quick" ]; then command="tools/test --quick"; fi
    say "Again: $command --filter '$names'" | indented
}

# test_package <part> <folder> <debug|release> <arguments of swift test ...>: with the folder of builds
# in `scratch`, the traits in `traits` and what to build in `what`.
test_package() {
    local part="$1" folder="$2" configuration="$3" report="$work/report"
    shift 3
    local common=(--package-path "$folder" "${scratch[@]}" ${traits[@]+"${traits[@]}"} -c "$configuration")
    rm -f "$report"
    follow "building $part" build_step swift build "${common[@]}" "${what[@]}"
    if [ "$status" != 0 ]; then
        part_failed "$part" "does not build" errors_of
        return
    fi
    if [ ! -d "$folder/Tests" ]; then
        say "passed   $part: builds, has no tests of its own ($took s)"
        return
    fi
    built="$took"
    follow "testing $part" test_step swift test "${common[@]}" --skip-build --disable-xctest \
        --xunit-output "$report" "$@"
    local tests failures skips
    tests="$([ -f "$report" ] && attribute "$report" tests || true)"
    if [ -z "$tests" ]; then
        part_failed "$part" "the test process ended with status $status and no report" tests_excerpt
        return
    fi
    failures="$(attribute "$report" failures)"
    skips="$(attribute "$report" skipped)"
    failures="${failures:-0}"
    skips="${skips:-0}"
    skipped=$((skipped + skips))
    if [ "$failures" != 0 ]; then
        passed=$((passed + tests - failures))
        local reason="$failures of $tests tests (build $built s, run $took s)"
        part_failed "$part" "$reason" tests_excerpt "$failures"
        say_again "$report" "${common[@]}"
    elif [ "$status" != 0 ]; then
        passed=$((passed + tests))
        part_failed "$part" "$tests tests, but swift test ended with status $status" tests_excerpt
    else
        local note=""
        [ "$skips" = 0 ] || note=", $skips skipped"
        part_passed "$part" "$tests tests" "$tests" "$note"
        grep -aE ' Test .* skipped' "$log" | indented || true
    fi
}

# A package that needs more than the library does: skipped when that cannot be had.
test_tool() { # test_tool <part> <folder> <debug|release> <arguments of swift test ...>
    if [ ! -f "$2/Package.swift" ]; then return; fi
    if ! swift package --package-path "$2" dump-package </dev/null >/dev/null 2>"$log"; then
        part_failed "$1" "Package.swift is wrong" errors_of
    elif ! has_dependencies "$2"; then
        part_skipped "$1" "$(missing_dependency)"
    else
        test_package "$@"
    fi
}
