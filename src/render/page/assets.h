/*
 * The files of this folder, and the page built from web/, as strings, made by tools/embed at build
 * time. The
 * digests are those that a Content-Security-Policy wants ("sha256-...").
 */
#ifndef SONDE_ASSETS_H
#define SONDE_ASSETS_H

extern const char asset_flame_css[], asset_flame_css_digest[];
extern const char asset_flame_html[];
extern const char asset_flame_js[], asset_flame_js_digest[];
extern const char asset_svg_css[], asset_svg_js[];
extern const char asset_web_css[], asset_web_css_digest[];
extern const char asset_web_js[], asset_web_js_digest[];

#endif
