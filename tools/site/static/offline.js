// Opened from a disk, a page may not read its neighbours: found pages are then listed without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
