/* A table that is wider than the screen scrolls by itself, and so must be reached with the keyboard. */
document$.subscribe(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
});
