"""The report of a run, or of two side by side: one HTML file, or a sheet of figures as SVG or PNG.

`gather` reads a trace once and keeps what is shown; the figures are drawn by hand into SVG, so
that the page, the SVG and the PNG are the same drawing; `page` writes it all into one file that
needs no network, no server and no browser extension.
"""
