#include "report/lesson_html.h"

namespace regard {

const char* const kLessonBuild =
    R"js(// ---- The page from the document ----
const lesson=JSON.parse(document.getElementById('lesson').textContent);
const figure=(block,...content)=>el('figure',{},el('figcaption',{},...both(block.caption)),el('div',{class:'scroll'},...content));
const cell=c=>'en' in c?both(c):[number(scalar(c))];
const drawn={
  paragraph:b=>el('p',{},...both(b.text)),
  table:b=>figure(b,el('table',{class:'plain'},el('thead',{},el('tr',{},...b.columns.map(c=>el('th',{},...both(c))))),
    el('tbody',{},...b.rows.map(r=>el('tr',{},...r.map(c=>el('td',{},...cell(c)))))))),
  matrices:b=>figure(b,el('div',{class:'matrices'},...b.matrices.map(m=>matrix(both(m.name),m.numbers,m.rows,m.columns)))),
  reads:b=>figure(b,reads(b.readers,b.keys,b.weights.number)),
  bars:b=>figure(b,bars(b)),
  lines:b=>figure(b,lines(b)),
  flow:b=>figure(b,el('div',{class:'flow'},...b.boxes.flatMap((box,i)=>[...(i?[el('i',{},'→')]:[]),
    el('div',{},el('b',{},...both(box.label)),el('span',{},...lowered(box.detail)))]))),
  exploration,exercise};
const title={en:'Attention, from three tokens to a model',zh:'注意力：从三个词元到一个模型'};
const about={en:'Every number here was computed by regard.',zh:'这里的每个数字都由 regard 算出。'};
const choices=[['en','English'],['zh-Hans','中文']].map(([code,name])=>{
  const b=el('button',{type:'button','data-language':code},name);
  b.addEventListener('click',()=>speak(code));
  return b;
});
function speak(code){
  document.documentElement.lang=code;
  document.title=code==='en'?title.en:title.zh;
  choices.forEach(b=>b.setAttribute('aria-pressed',b.dataset.language===code));
}
document.body.append(el('div',{class:'frame'},
  el('nav',{},el('h1',{},...both(title)),el('p',{},...both(about)),el('div',{class:'switch'},...choices),
    el('ol',{},...lesson.steps.map(s=>el('li',{},el('a',{href:'#'+s.id},el('b',{},s.id),el('span',{},...both(s.title))))))),
  el('main',{},...lesson.steps.map(s=>el('section',{id:s.id},el('h2',{},el('b',{},s.id),...both(s.title)),...s.blocks.map(b=>drawn[b.kind](b)))),
    el('footer',{},'regard '+lesson.regard+(lesson.model?' · '+lesson.model.name:'')))));
speak(document.documentElement.lang);
)js";

}  // namespace regard
