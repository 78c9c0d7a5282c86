#!/usr/bin/env bash
# Fetches a package of the distribution and unpacks it, without installing it; apt checks its signature.
#   fetch-package.sh FOLDER NAME…   the first of these that there is, into FOLDER, and prints its name
. "$(dirname "$0")/prelude.sh"

[ $# -ge 2 ] || die "usage: fetch-package.sh FOLDER NAME…"
folder=$1
shift
if [ ! -e "$folder/name" ]; then
  apt-cache show postgresql >/dev/null 2>&1 || as_root apt-get update --quiet >&2
  package=
  for name in "$@"; do
    if apt-cache show "$name" >/dev/null 2>&1; then
      package=$name
      break
    fi
  done
  [ -n "$package" ] || die "the package manager has none of: $*"
  say "fetching $package"
  rm -rf "$folder" && mkdir -p "$folder"
  # Not as the user _apt, who may not be able to write here.
  (cd "$folder" && apt-get download --quiet -o APT::Sandbox::User=root "$package" >&2)
  dpkg-deb --extract "$folder/$package"_*.deb "$folder"
  rm "$folder/$package"_*.deb
  # Written last: the package is there as a whole or not at all.
  echo "$package" >"$folder/name"
fi
cat "$folder/name"
