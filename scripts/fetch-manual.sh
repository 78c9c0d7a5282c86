#!/usr/bin/env bash
# Fetches the PostgreSQL manual (HTML) that the distribution packages, for the demo and the tests, and
# prints its folder. The package is unpacked, not installed; apt checks its signature.
. "$(dirname "$0")/prelude.sh"

folder=$RAG_HOME/manual
if [ ! -e "$folder/html" ]; then
  apt-cache show postgresql >/dev/null 2>&1 || as_root apt-get update --quiet >&2
  package=
  for major in 18 17 16 15; do
    if apt-cache show "postgresql-doc-$major" >/dev/null 2>&1; then
      package=postgresql-doc-$major
      break
    fi
  done
  [ -n "$package" ] || die "the package manager has no postgresql-doc package"
  say "fetching $package"
  rm -rf "$folder" && mkdir -p "$folder/package"
  # Not as the user _apt, who may not be able to write here.
  (cd "$folder" && apt-get download --quiet -o APT::Sandbox::User=root "$package" >&2)
  dpkg-deb --extract "$folder/$package"_*.deb "$folder/package"
  # The link is made last: the manual is there as a whole or not at all.
  ln -s "package/usr/share/doc/$package/html" "$folder/html"
fi
echo "$folder/html"
