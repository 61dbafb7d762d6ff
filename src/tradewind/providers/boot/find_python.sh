# A Python that is new enough, by its path; nothing where there is none.
suits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1; }
find_python() {
  for python in python3 python3.14 python3.13 python3.12 python3.11; do
    if suits "$python"; then command -v "$python"; return; fi
  done
}
