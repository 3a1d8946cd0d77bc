// One style sheet for all pages. Two colours carry meaning everywhere: blue stays on a client, orange
// leaves it. Sizes of the picture's clients are those of picture.cpp.
#include "starfold/page/html.h"

namespace starfold::page {

std::string_view style() {
  return R"css(
:root {
  --paper: #fff; --ground: #f5f6f8; --ink: #1c2330; --muted: #566072; --line: #d8dde6; --link: #1d4f91;
  --stays: #175a87; --stays-ground: #e9f2f9; --stays-line: #a9cbe3;
  --leaves: #99440a; --leaves-ground: #fdf1e4; --leaves-line: #e9bd92;
  --loop: #5b4a99; --loop-ground: #f4f1fb; --loop-line: #b9add9;
  --warm: #c2540a; --cool: #1c6ea4;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #161b22; --ground: #0e1218; --ink: #e4e8ee; --muted: #a0aaba; --line: #2d3542; --link: #8fbaf3;
    --stays: #8ec5ec; --stays-ground: #14273a; --stays-line: #2f5877;
    --leaves: #f3b27a; --leaves-ground: #33220f; --leaves-line: #70481f;
    --loop: #c0b2f2; --loop-ground: #1f1b30; --loop-line: #544785;
    --warm: #b9631c; --cool: #2a78b4;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif; overflow-wrap: break-word; }
header, nav, main, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
.kind { margin: 0; color: var(--muted); font-size: .9rem; letter-spacing: .01em; }
h1 { margin: .1rem 0 .6rem; font-size: clamp(1.6rem, 1.2rem + 2vw, 2.3rem); line-height: 1.2; letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { margin: 0 0 .8rem; font-size: 1.35rem; line-height: 1.3; letter-spacing: -.01em; }
h3 { margin: 1.6rem 0 .5rem; font-size: 1.05rem; line-height: 1.4; }
h4 { margin: .9rem 0 .3rem; font-size: .85rem; font-weight: 600; color: var(--muted); }
p { margin: 0 0 .8rem; max-width: 46rem; }
.lead { font-size: 1.15rem; line-height: 1.5; }
a { color: var(--link); text-underline-offset: .15em; text-decoration-thickness: from-font; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0 0; padding: .7rem 0; list-style: none; border-top: 1px solid var(--line); font-size: .9rem; }
nav a { color: var(--muted); text-decoration: none; }
nav a:hover { color: var(--link); text-decoration: underline; }
section { margin: 0 0 1.25rem; padding: 1.5rem; background: var(--paper); border: 1px solid var(--line); border-radius: .6rem; }
section > :last-child, section > .scroll:last-child { margin-bottom: 0; }
footer { padding-top: .5rem; padding-bottom: 3rem; color: var(--muted); font-size: .85rem; }
code, .type { font-family: var(--mono); font-size: .88em; font-variant-ligatures: none; }
p code, li code, h3 code { overflow-wrap: anywhere; }
.hash { overflow-wrap: anywhere; }
.type { white-space: nowrap; }
.type.stays { color: var(--stays); }
.type.shared { color: var(--leaves); }
.formula i { font-family: Georgia, "Times New Roman", "DejaVu Serif", serif; font-size: 1.04em; }
.formula sup { font-size: .7em; line-height: 0; }
.points { margin: 0; padding: 0; list-style: none; max-width: 46rem; }
.points li { margin: 0 0 .7rem; padding-left: 1.1rem; border-left: 3px solid var(--line); }
.points li:last-child { margin-bottom: 0; }
.points li:first-child { border-color: var(--stays); }
.points li:nth-child(2) { border-color: var(--leaves); }
.glance { display: grid; gap: 1rem 2.5rem; }
.figures { margin: 0; padding: 1rem 1.2rem; border-radius: .5rem; background: var(--ground); align-self: start; }
.figures div { margin: 0 0 .8rem; display: flex; flex-direction: column-reverse; }
.figures div:last-child { margin-bottom: 0; }
.figures dt { color: var(--muted); font-size: .85rem; line-height: 1.35; }
.figures dd { margin: 0; font-size: 1.35rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.figures .letter { flex-direction: row-reverse; justify-content: flex-end; gap: .7rem; align-items: baseline; margin-bottom: .3rem; }
.figures .letter dd { font-size: 1rem; }
@media (min-width: 56rem) { .glance { grid-template-columns: minmax(0, 1fr) 17rem; } }

.scroll { overflow-x: auto; margin: 0 0 1rem; max-width: 100%; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { padding: .4rem 1.1rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; font-size: .82rem; color: var(--muted); white-space: nowrap; }
th:last-child, td:last-child { padding-right: .2rem; }
tbody tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td .shows { white-space: nowrap; }
td .shows.group, td .shows.client, td .shows.single { color: var(--leaves); font-weight: 600; }
td .monoid { font-family: var(--mono); font-size: .8em; color: var(--muted); margin-left: .35rem; }
td code { display: inline-block; width: max-content; max-width: 26rem; white-space: normal; overflow-wrap: anywhere; }
table.lines code, .listing code { display: inline; max-width: none; white-space: inherit; overflow-wrap: normal; }
table.lines td { padding-top: .15rem; padding-bottom: .15rem; border: 0; white-space: pre; }

.listing { background: var(--ground); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem 0; }
.listing table { font-size: .9rem; line-height: 1.6; min-width: 100%; }
.listing td { padding: 0 1rem 0 0; border: 0; white-space: pre; tab-size: 2; }
.listing .no { padding: 0 .9rem; text-align: right; color: var(--muted); font: .8em var(--mono); user-select: none; width: 1%; }
.listing tr:target { background: var(--stays-ground); }
.listing code { direction: ltr; unicode-bidi: isolate; }
.tc { color: var(--muted); }
.tk { font-weight: 600; }
.tn { color: var(--loop); }
mark { background: var(--leaves-ground); color: var(--leaves); border-radius: .2rem; box-shadow: inset 0 -1.5px 0 var(--leaves-line); }
mark .tn, mark .tk { color: inherit; }
details { margin: .6rem 0 0; }
summary { cursor: pointer; color: var(--link); font-size: .92rem; width: fit-content; }

.picture h3 { margin: 0 0 .4rem; }
.often { margin-left: .5rem; padding: .1rem .5rem; border-radius: 1rem; background: var(--ground); color: var(--muted); font-size: .8rem; font-weight: 400; white-space: nowrap; }
.round, .server, .loop { border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.1rem; background: var(--paper); }
.server { padding: .7rem 1.1rem; width: fit-content; max-width: 100%; }
.server .scroll { margin: 0; }
.server h3 { font-size: .92rem; color: var(--muted); font-weight: 600; }
.next { padding: .25rem 0 .25rem 1.6rem; line-height: 0; }
.chips { display: flex; flex-wrap: wrap; gap: .35rem .5rem; margin: 0; padding: 0; list-style: none; }
.chips li { padding: .1rem .5rem; border: 1px solid var(--line); border-radius: .35rem; background: var(--paper); max-width: 100%; }
.arrow { fill: none; stroke: var(--muted); stroke-width: 1.6; flex: none; }
.arrow .tip { fill: var(--muted); stroke: none; }
.arrow.right { width: 2rem; height: .75rem; }
.back { flex: 1 1 2.5rem; display: flex; align-items: center; min-width: 2.5rem; }
.back::after { content: ""; flex: 1; border-top: 1.6px dashed var(--muted); }
.back svg { width: .625rem; height: .625rem; fill: var(--muted); }
.arrow.down { width: .75rem; height: 1.625rem; }

.loop { position: relative; padding: 1rem .9rem .9rem 2.4rem; background: var(--loop-ground); border-color: var(--loop-line); }
.loop > h3 { color: var(--loop); margin-bottom: .8rem; }
.loop > h3 .often { background: var(--paper); }
.rail { position: absolute; left: .85rem; top: 1.75rem; bottom: 1.6rem; width: .9rem; border: 2px solid var(--loop); border-right: 0; border-radius: .5rem 0 0 .5rem; }
.rail svg { position: absolute; right: -.55rem; top: calc(-.3rem - 1px); width: .72rem; height: .6rem; fill: var(--loop); }
.after { margin: .9rem 0 0; font-size: .92rem; }
.after h4 { margin: 0 0 .2rem; color: var(--loop); }
.after ul { margin: 0 0 .3rem; padding: 0; list-style: none; }
.after p { margin: 0 0 .2rem; }

.flowbox { container-type: inline-size; margin: .9rem 0 .2rem; }
.flow { display: grid; grid-template-columns: minmax(0, 1fr); }
.sends { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .6rem; margin-bottom: 1rem; font-size: .9rem; color: var(--muted); }
.sends code { color: var(--ink); }
.cap { display: flex; justify-content: space-between; gap: .5rem; margin-bottom: .4rem; font-size: .8rem; line-height: 1.3; color: var(--muted); }
.cap b { display: block; color: var(--ink); }
.clients { margin: 0; padding: 0; list-style: none; }
.client { display: flex; align-items: center; gap: .6rem; height: 4.75rem; padding: 0 .7rem; border: 1px solid var(--stays-line); border-radius: .5rem; background: var(--stays-ground); }
.client + li, .dots + li { margin-top: .625rem; }
.dots { display: flex; justify-content: center; align-items: center; gap: .5rem; height: 1.375rem; color: var(--muted); font-size: .85rem; line-height: 1; }
.dots span { font-size: 1.1rem; }
.records { flex: none; width: 1.875rem; height: 2.75rem; fill: var(--stays); }
.records .none { fill: none; stroke: var(--stays); stroke-dasharray: 3 3; }
.who { flex: 1 1 4.6rem; min-width: 3rem; line-height: 1.35; }
.who > * { display: block; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.who span { font-size: .8rem; color: var(--stays); }
.client .arrow.right { width: 1.4rem; }
.encoder { flex: 0 1 auto; min-width: min-content; max-width: 7.5rem; padding: .3rem .5rem; border: 1px solid var(--leaves-line); border-radius: .4rem; background: var(--paper); text-align: center; font-size: .8rem; line-height: 1.3; }
.encoder > i { display: block; font: italic 1.05rem/1.2 Georgia, "Times New Roman", "DejaVu Serif", serif; }
.encoder > span { display: block; color: var(--leaves); max-height: 2.6em; overflow: hidden; }
.fan { display: none; width: 4rem; fill: none; stroke: var(--leaves); stroke-width: 1.6; }
.fan .tip { fill: var(--leaves); stroke: none; }
.boundary { display: flex; justify-content: center; padding: .3rem 0; line-height: 0; }
.boundary span { align-self: center; margin-left: .5rem; color: var(--leaves); font-size: .8rem; line-height: 1; }
.c2 { display: none; }
.c2 b { color: var(--leaves); }
.boundary .arrow { stroke: var(--leaves); }
.boundary .arrow .tip { fill: var(--leaves); }
.onward { display: flex; justify-content: center; padding: .3rem 0; line-height: 0; }
.onward .right { display: none; }
.box { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .8rem; font-size: .9rem; }
.merge { border-color: var(--leaves-line); background: var(--leaves-ground); }
.merge h4 { margin: .7rem 0 .1rem; color: var(--leaves); }
.merge h4:first-child { margin-top: 0; }
.merge ul { margin: 0; padding: 0 0 0 1.25rem; list-style: none; }
.merge code { overflow-wrap: anywhere; }
.box p { margin: 0; color: var(--muted); }
@container (min-width: 39rem) {
  .flow { grid-template-columns: minmax(0, 1.2fr) 4rem minmax(0, 1fr) 2.4rem minmax(0, .8fr); align-items: center; }
  .sends { grid-column: 1 / -1; }
  .cap { grid-row: 2; align-self: start; }
  .clients, .boundary, .merge, .onward, .decoder { grid-row: 3; }
  .c2 { display: flex; align-self: start; justify-content: center; grid-column: 2; }
  .c1, .clients { grid-column: 1; } .c3, .merge { grid-column: 3; } .c5, .decoder { grid-column: 5; }
  .boundary { grid-column: 2; padding: 0; } .onward { grid-column: 4; padding: 0; }
  .fan, .onward .right { display: block; }
  .boundary .down, .boundary span, .onward .down { display: none; }
}
@container (max-width: 50rem) {
  .client { gap: .4rem; padding: 0 .5rem; }
  .client .arrow.right { width: .9rem; }
}

.tiles { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 0 0 1.4rem; }
.tiles > div { display: flex; flex-direction: column; min-width: 5rem; }
.tiles dt { color: var(--muted); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.4rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tiles .more { font-size: .9rem; color: var(--muted); }
.facts > div { flex-direction: column-reverse; }
.result { padding: 1.1rem 0 .3rem; border-top: 1px solid var(--line); }
h2 + .result { padding-top: 0; border-top: 0; }
.result h3 { margin: 0 0 .6rem; }
.pair { display: flex; flex-wrap: wrap; gap: .8rem 2rem; align-items: flex-start; }
figure { margin: 0 0 .6rem; flex: 1 1 20rem; max-width: 25rem; min-width: min(100%, 16rem); }
figcaption, .note { color: var(--muted); font-size: .85rem; margin: .2rem 0 .6rem; }
.numbers { flex: 0 1 auto; min-width: 0; max-width: 100%; }
.numbers .scroll { max-height: 26rem; overflow-y: auto; }
.numbers td, .numbers th { padding-top: .22rem; padding-bottom: .22rem; }
.numbers thead th { position: sticky; top: 0; background: var(--paper); }
.numbers td:first-child { position: sticky; left: 0; background: var(--paper); }
data sup { line-height: 0; }
.index { color: var(--muted); font-size: .85em; }
.purpose { margin: .2rem 0 .8rem; }
.caution { border-left: .3rem solid #b45309; padding: .3rem .8rem; margin: .8rem 0; }
.traces { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem 2rem; }
.trace h3 { margin: 0 0 .4rem; }
.trace .note { margin: 0; }
.trace .scroll { max-height: 20rem; overflow-y: auto; margin-top: .4rem; }
.measure { display: block; height: 3px; margin: .15rem 0 0 auto; border-radius: 2px; background: var(--stays); min-width: 1px; }
td:nth-child(3) > .measure { background: var(--leaves); }
.clientlist td:nth-child(n+2), .clientlist th:nth-child(n+2) { min-width: 7.5rem; }

.chart { display: block; width: 100%; height: auto; overflow: visible; font-size: 13px; font-variant-numeric: tabular-nums; }
.chart text { fill: var(--muted); }
.chart .end { text-anchor: end; }
.chart .middle { text-anchor: middle; }
.chart .strong { fill: var(--ink); }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .zero { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 3 3; }
.chart .axis { stroke: var(--muted); stroke-width: 1; }
.chart .curve { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; stroke: var(--c); }
.chart .dot { fill: var(--cool); stroke: var(--paper); stroke-width: 1.2; }
.chart .interval { stroke: var(--cool); stroke-width: 2; }
.chart .bar { fill: var(--cool); }
.chart .warm { fill: var(--warm); }
.chart .cool { fill: var(--cool); }
.s0 { --c: var(--cool); } .s1 { --c: var(--warm); } .s2 { --c: #2c8a5b; } .s3 { --c: var(--loop); } .s4 { --c: #a8435f; } .s5 { --c: var(--muted); }
.key { margin-right: .8rem; white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: 1rem; height: .2rem; margin-right: .35rem; vertical-align: .25rem; background: var(--c); }

@media (max-width: 40rem) {
  header, nav, main, footer { padding-left: .75rem; padding-right: .75rem; }
  header { padding-top: 1.5rem; }
  section { padding: 1.1rem .9rem; border-radius: .5rem; }
  .round { padding: .8rem .8rem; }
  .loop { padding: .9rem .5rem .7rem 1.7rem; }
  .rail { left: .45rem; width: .7rem; }
}
@media print {
  :root { --ground: #fff; }
  @page { margin: 16mm 14mm; }
  html { font-size: 10pt; }
  header, nav, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  header { padding-top: 0; }
  nav { display: none; }
  section { border: 0; padding: 0; margin-bottom: 1.6rem; }
  h2, h3, h4 { break-after: avoid; }
  .round, .flow, .server, .client, .box, tr, figure { break-inside: avoid; }
  .glance { grid-template-columns: minmax(0, 1fr) 15rem; }
  .figures { border: 1px solid var(--line); }
  .scroll, .numbers .scroll { overflow: visible; max-height: none; }
  .listing td { white-space: pre-wrap; }
  td code, table.lines td { width: auto; white-space: pre-wrap; }
  .numbers .scroll { overflow: hidden; }
  .numbers table { font-size: 6.5pt; }
  .numbers th, .numbers td { padding-right: .55rem; }
  .numbers th { white-space: normal; overflow-wrap: anywhere; }
  .round details::details-content, .module::details-content { content-visibility: visible; block-size: auto; }
  a { color: inherit; text-decoration: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";
}

}  // namespace starfold::page
