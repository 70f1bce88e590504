// Wide tables scroll inside a frame that the theme adds: let the keyboard reach it.
new MutationObserver(() => document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((e) => (e.tabIndex = 0))).observe(
  document.body,
  { childList: true, subtree: true },
);
