#!/usr/bin/env bash
# install.sh: `make install` below a path with a space, moved elsewhere: program, library, manual pages, completion and
# unit must be complete there, and true to the program's own settings. `make install-test` runs it.
set -u
cd "$(dirname "$0")/../.." || exit 1
make=${MAKE:-make}
suite=install-test
. tests/support/checks.sh
has() { command -v "$1" >/dev/null; }

check "make install ends well" env MAKEFLAGS= "$make" --no-print-directory install DESTDIR="$work/a stage" \
    PREFIX="/opt/some place"
mv "$work/a stage/opt/some place" "$work/an other place"
place="$work/an other place"
attnd="$place/bin/attnd"

same_version() { [ "$("$attnd" --version)" = "attnd $(cat VERSION)" ]; }
check "the program has the version of the file VERSION" same_version

# The library, by its .pc alone, in both ways that C programs link.
library() { # library FLAG…: builds and runs the example
    local flags
    flags=$(PKG_CONFIG_PATH="$place/lib/pkgconfig" "${PKG_CONFIG:-pkg-config}" "$@" --cflags --libs attn) || return 1
    eval "${CC:-cc} -std=c17 examples/core.c $flags -o \"\$work/core\"" && LD_LIBRARY_PATH="$place/lib" "$work/core"
}
# The commands in the head of core.c, after the `make install` that stands above them.
core_as_printed() {
    mkdir "$work/home" && cp examples/core.c "$work/home" && printf 'cc() { command %s "$@"; }\n' "${CC:-cc}" > "$work/printed" &&
        sed -n '/PREFIX=$HOME/,/^ \*\//s/^ \*     //p' examples/core.c >> "$work/printed" && [ "$(wc -l < "$work/printed")" = 3 ] &&
        env MAKEFLAGS= "$make" --no-print-directory install PREFIX="$work/home/attn" &&
        (cd "$work/home" && env -u LD_LIBRARY_PATH HOME="$work/home" bash -e "$work/printed") > "$work/core.txt" &&
        [ "$(grep -c '^weights .* out ' "$work/core.txt")" = 3 ]
}
# What it prints is softmax([1, 0] / sqrt 2) of 10 and 20, and of 20 and 10.
example_of_libattn() {
    sed -n -e 's/\\-/-/g' -e 's/\\e/\\/g' -e '/^\.EX$/,/^\.EE$/{/^\.E[XE]$/!p}' "$place/share/man/man3/libattn.3" > "$work/example.c"
    export PKG_CONFIG_PATH="$place/lib/pkgconfig"
    eval "${CC:-cc} -std=c17 \"\$work/example.c\" $("${PKG_CONFIG:-pkg-config}" --cflags --libs attn)" \
        -Wl,-rpath,"'$place/lib'" -o '"$work/example"' && [ "$(env -u LD_LIBRARY_PATH "$work/example")" = "13.3024 16.6976" ]
}
# Instrumented libraries want an instrumented program; tests/others/examples builds that.
if [ "${MODE:-release}" = release ]; then
    check "a program links the shared library where it is now" library
    mv "$place"/lib/libattn.so* "$work"
    check "a program links the static library" library --static
    mv "$work"/libattn.so* "$place/lib"
    check "core.c builds and runs as its head says" core_as_printed
    check "the program of libattn(3) builds and runs without LD_LIBRARY_PATH" example_of_libattn
fi

flags=$("$attnd" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
in_manual() {
    local flag
    for flag in $flags; do
        sed 's/\\-/-/g' "$place/share/man/man1/attnd.1" | grep -qE "^\.BR? $flag( |\$)" || { echo "lacks $flag"; return 1; }
    done
}
check "the manual page has every setting" in_manual
if has mandoc; then
    check "the manual pages are well formed" mandoc -T lint -W error "$place"/share/man/man?/*
elif has man; then
    well_formed() { for page in "$place"/share/man/man?/*; do [ -z "$(man --warnings -l "$page" 2>&1 >/dev/null)" ] || return 1; done; }
    check "the manual pages are well formed" well_formed
fi

# complete WORD…: what completion offers for the last word.
complete_words() {
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attnd; printf "%s\n" "${COMPREPLY[@]}"' \
        - "$place/share/bash-completion/completions/attnd" "$@"
}
offers() { # offers WANTED WORD…
    local wanted=$1
    shift
    [ "$(complete_words "$@" | sort | tr '\n' ' ')" = "$(tr ' ' '\n' <<<"$wanted" | sort | tr '\n' ' ')" ] ||
        { complete_words "$@"; return 1; }
}
check "completion offers every setting" offers "$(echo $flags)" attnd --
check "completion offers the words of a setting" offers "text json" attnd --log-format ""
check "completion offers the two states of a switch" offers "on off" attnd --layers-readonly ""
check "completion offers a file" offers Makefile attnd --keys Makef

# What fish offers for the last word, without descriptions; and what zsh is told about each setting.
fish_offers() { # fish_offers WANTED LINE
    [ "$(fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$place/share/fish/vendor_completions.d/attnd.fish" "$2" |
        cut -f1 | sort | tr '\n' ' ')" = "$(tr ' ' '\n' <<<"$1" | sort | tr '\n' ' ')" ]
}
zsh_knows() {
    zsh -f -c '_arguments() { print -l -- "$@" }; words=(attnd --); CURRENT=2; . "$1"' - "$place/share/zsh/site-functions/_attnd" |
        sed -n "s/^\*\{0,1\}\(--[a-z-]*\)\[.*/\1/p" | sort | tr '\n' ' ' > "$work/zsh.txt"
    [ "$(cat "$work/zsh.txt")" = "$(tr ' ' '\n' <<<"$(echo $flags)" | sort | tr '\n' ' ')" ]
}
if has fish; then
    check "fish offers every setting" fish_offers "$(echo $flags)" "attnd --"
    check "fish offers the words of a setting" fish_offers "text json" "attnd --log-format "
else
    skip "completion in fish: no fish"
fi
if has zsh; then
    check "zsh knows every setting" zsh_knows
else
    skip "completion in zsh: no zsh"
fi

unit="$place/lib/systemd/system/attnd.service"
starts_program() { grep -qxF 'ExecStart=/opt/some\x20place/bin/attnd' "$unit"; }
check "the unit starts the program" starts_program
if has systemd-analyze; then
    # The check wants the program to be there, so it gets the unit with this one's place.
    well_formed_unit() {
        sed "s|^ExecStart=.*|ExecStart=$(realpath "${BUILD:-build/release}/attnd" | sed 's/ /\\\\x20/g')|" "$unit" > "$work/attnd.service"
        ! systemd-analyze verify --man=no "$work/attnd.service" 2>&1 | grep attnd.service
    }
    check "the unit is well formed" well_formed_unit
else
    skip "the unit's form: no systemd-analyze"
fi

gone_again() {
    env MAKEFLAGS= "$make" --no-print-directory uninstall DESTDIR="$work" PREFIX="/an other place" || return 1
    find "$place" -type f -o -type l > "$work/left"
    cat "$work/left"
    [ ! -s "$work/left" ] && [ ! -e "$place/include/attn" ]
}
check "make uninstall leaves nothing" gone_again

conclude
