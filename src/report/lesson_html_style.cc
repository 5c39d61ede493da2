#include "report/lesson_html.h"

namespace regard {

const char* const kLessonStyle =
    R"(:root{color-scheme:light dark;--paper:#fff;--card:#fbfbfa;--ink:#1f2328;--faint:#6e7781;--line:#d8dee4;--none:#eef1f4;--warm:232,119,34;--cool:37,99,205;--green:45,150,90;--right:#1a7f37;--wrong:#cf222e}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--card:#131922;--ink:#e6edf3;--faint:#8b949e;--line:#30363d;--none:#1a212a;--warm:235,130,50;--cool:88,145,255;--green:80,190,120;--right:#3fb950;--wrong:#f85149}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,'Segoe UI',Roboto,'Noto Sans','Noto Sans CJK SC','PingFang SC','Microsoft YaHei','DejaVu Sans',sans-serif}
html[lang=en] .zh,html[lang=zh-Hans] .en{display:none}
.frame{display:grid;grid-template-columns:17rem minmax(0,1fr);max-width:80rem;margin:0 auto}
nav{position:sticky;top:0;align-self:start;height:100vh;overflow:auto;padding:1.6rem 1rem 1rem 1.25rem;border-right:1px solid var(--line);font-size:.92rem}
nav h1{font-size:1.35rem;margin:0 0 .1rem;line-height:1.25}
nav p{margin:.2rem 0 .8rem;color:var(--faint)}
nav ol{list-style:none;margin:1rem 0 0;padding:0}
nav a{display:flex;gap:.6rem;padding:.22rem .4rem;border-radius:5px;color:inherit;text-decoration:none;line-height:1.35}
nav a:hover{background:var(--none)}
nav a b,h2 b{color:rgb(var(--warm));font-weight:600}
.switch{display:inline-flex;border:1px solid var(--line);border-radius:6px;overflow:hidden}
.switch button{border:0;border-radius:0;padding:.2rem .7rem}
.switch button[aria-pressed=true]{background:rgb(var(--warm));color:#fff}
main{padding:1.2rem 2.2rem 4rem;min-width:0}
section{padding:1rem 0 1.6rem;border-bottom:1px solid var(--line)}
section:last-of-type{border:0}
h2{font-size:1.45rem;line-height:1.3;margin:.6rem 0 .6rem}
h2 b{margin-right:.5rem}
p{margin:.6rem 0;max-width:46rem}
figure{margin:1.1rem 0}
figcaption{color:var(--faint);font-size:.9rem;margin:0 0 .45rem;max-width:46rem;line-height:1.45}
.scroll{overflow:auto}
.matrices{display:flex;flex-wrap:wrap;gap:.6rem 1.8rem;align-items:center}
.matrix{display:inline-block}
.matrix .name{font-size:.9rem;margin-bottom:.2rem;text-align:center}
.matrix table{border-collapse:separate;border-spacing:3px;border:solid var(--ink);border-width:0 1.5px;border-radius:7px;font-variant-numeric:tabular-nums;margin:0 auto}
.matrix td{min-width:2.7rem;height:2.3rem;padding:.1rem .4rem;text-align:center;border-radius:5px;white-space:nowrap}
.matrix th{font-weight:normal;color:var(--faint);font-size:.82rem;padding:0 .25rem;text-align:right;max-width:7rem;white-space:pre;overflow:hidden;text-overflow:ellipsis}
.matrix thead th{text-align:center}
.matrix.wide td{min-width:1.3rem;height:1.6rem;padding:0 .15rem;font-size:.74rem}
.matrix.wide thead th{writing-mode:vertical-rl;text-align:left;max-height:6rem}
.fraction{display:inline-flex;flex-direction:column;vertical-align:middle;line-height:1.12;font-size:.86em;text-align:center}
.fraction span:first-child{border-bottom:1px solid currentColor;padding:0 .15em}
table.plain{border-collapse:collapse;font-variant-numeric:tabular-nums}
.plain th,.plain td{padding:.28rem .8rem;text-align:right;border-bottom:1px solid var(--line)}
.plain th{font-weight:normal;color:var(--faint);font-size:.88rem;line-height:1.3;vertical-align:bottom;max-width:11rem}
.plain th:first-child,.plain td:first-child{text-align:left;padding-left:0}
.bars{display:grid;grid-template-columns:max-content minmax(8rem,22rem) max-content;gap:.25rem .7rem;align-items:center;font-variant-numeric:tabular-nums}
.bars .series{grid-column:1/-1;color:var(--faint);font-size:.88rem;margin-top:.3rem}
.bars i{display:block;height:1.05rem;border-radius:3px;background:rgb(var(--warm));min-width:1px}
.bars i.cool{background:rgb(var(--cool))}
.flow{display:flex;flex-wrap:wrap;gap:.5rem 0;align-items:stretch}
.flow div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.45rem .8rem;text-align:center;display:flex;flex-direction:column;justify-content:center}
.flow div>span{color:var(--faint);font-size:.85rem}
.flow i{align-self:center;padding:0 .45rem;color:var(--faint);font-style:normal}
svg{display:block;max-width:100%;height:auto}
svg text{font:13px system-ui,'Noto Sans','Noto Sans CJK SC','PingFang SC','Microsoft YaHei',sans-serif;fill:var(--ink)}
svg text.faint{fill:var(--faint);font-size:11.5px}
svg .axis{stroke:var(--line)}
svg .s0{stroke:rgb(var(--cool));fill:rgb(var(--cool))}
svg .s1{stroke:rgb(var(--warm));fill:rgb(var(--warm))}
svg path.s0,svg path.s1{fill:none;stroke-width:2.2}
svg path.s0{stroke-width:5;stroke-opacity:.45}
svg text.s0,svg text.s1{stroke:none}
svg .read{fill:none;stroke:rgb(var(--warm));stroke-opacity:.72;stroke-linecap:butt}
svg .read:hover{stroke-opacity:1}
svg .r1{stroke:rgb(var(--cool));stroke-opacity:.5}
svg .r2{stroke:rgb(var(--green));stroke-opacity:.55}
sub{font-size:.72em;line-height:0}
.move,.exercise{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1rem 1.2rem}
.move .sides{display:flex;flex-wrap:wrap;gap:1rem 2.2rem;align-items:center}
.sliders{display:grid;gap:.7rem;flex:1 1 15rem;max-width:22rem}
.sliders label{display:grid;grid-template-columns:1fr max-content;gap:.1rem .5rem;font-size:.92rem}
.sliders input[type=range]{grid-column:1/-1;width:100%;accent-color:rgb(var(--warm))}
.sliders input[type=checkbox]{accent-color:rgb(var(--warm));width:1.1rem;height:1.1rem}
.sliders output{font-variant-numeric:tabular-nums}
button{font:inherit;font-size:.92rem;color:inherit;background:var(--paper);border:1px solid var(--line);border-radius:6px;padding:.25rem .8rem;cursor:pointer}
button:hover{border-color:rgb(var(--warm))}
.answers{display:flex;flex-wrap:wrap;gap:.6rem 1rem;margin:.8rem 0}
.answers label{display:flex;align-items:center;gap:.4rem}
.answers input{font:inherit;width:5.2rem;padding:.2rem .5rem;color:inherit;background:var(--paper);border:1px solid var(--line);border-radius:6px;font-variant-numeric:tabular-nums}
.answers .mark{width:1.1em;font-weight:bold}
.right .mark{color:var(--right)}.wrong .mark{color:var(--wrong)}
.right input{border-color:var(--right)}.wrong input{border-color:var(--wrong)}
.exercise .more{margin:.6rem 0 0;padding:0 0 0 1.1rem}
.exercise .verdict{margin-left:.8rem}
footer{color:var(--faint);font-size:.88rem;margin-top:2rem}
@media (max-width:56rem){.frame{display:block}nav{position:static;height:auto;border-right:0;border-bottom:1px solid var(--line)}nav ol{columns:2 14rem}main{padding:1rem 1.1rem 3rem}}
@media print{nav,.move,.exercise button{display:none}.frame{display:block}}
)";

}  // namespace regard
