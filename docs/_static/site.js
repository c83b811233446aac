// Browsers do not let pages opened from a folder read other files: search shows titles only there.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
