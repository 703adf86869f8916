#!/bin/sh
# fetch.sh DIR: downloads the Debian packages whose text the vectors are fitted to, and unpacks each to
# DIR/package. Runs on Debian 12 without root, apart from an `apt-get update` beforehand.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/deb" "$1/lists/partial" "$1/descriptions"
cd "$1"
packages=$(python3 "$here/corpus.py")
(cd deb && apt-get download $packages)
for f in deb/*.deb; do
	name=$(basename "$f")
	dpkg -x "$f" "${name%%_*}"
done
# The descriptions of all packages, which apt keeps apart from them.
apt-get update -o Dir::State::Lists="$PWD/lists" -o Acquire::Languages=en
for f in lists/*Translation-en*; do
	/usr/lib/apt/apt-helper cat-file "$f" >"descriptions/$(basename "$f")"
done
