#include "report/lesson_html.h"

namespace regard {

const char* const kLessonInteract =
    R"js(// ---- Things to move, and questions ----
const asNumbers=m=>({shape:[m.length,m[0].length],number:m.map(r=>r.map(x=>Number.isFinite(x)?x:null)),fraction:m.map(r=>r.map(()=>null)),exact:m.map(r=>r.map(()=>null))});
const words={weights:{en:'weights',zh:'权重'},outputs:{en:'output',zh:'输出'},loss:{en:'loss',zh:'损失'},reset:{en:'Reset',zh:'复位'},check:{en:'Check',zh:'检查'},
  hint:{en:'Hint',zh:'提示'},way:{en:'Show the way',zh:'看解法'},all:{en:'All right.',zh:'全对。'},not:{en:'Not yet.',zh:'还不对。'},
  unread:{en:'Write a fraction (2/5), a decimal (0.4) or a percentage.',zh:'请写分数（2/5）、小数（0.4）或百分数。'}};
function exploration(block){
  const settings=block.sliders.map(s=>s.initial),view=el('div'),inputs=[];
  const draw=()=>{
    const result=run(moved(block,settings));
    view.replaceChildren(reads(block.readers,block.keys,result.weights),
      el('div',{class:'matrices'},
        matrix(both(words.weights),asNumbers(result.weights),block.readers,block.keys),
        matrix(both(words.outputs),asNumbers(result.outputs),block.readers,[]),
        ...(result.loss===null?[]:[matrix(both(words.loss),asNumbers([[result.loss]]),[],[])])));
  };
  const sliders=el('div',{class:'sliders'});
  block.sliders.forEach((slider,i)=>{
    const toggle=slider.low===0&&slider.high===1&&slider.step===1,shown=el('output');
    const input=toggle?el('input',{type:'checkbox'}):el('input',{type:'range',min:slider.low,max:slider.high,step:slider.step});
    const show=()=>{if(toggle)input.checked=settings[i]!==0;else{input.value=settings[i];shown.textContent=decimal(settings[i]);}};
    input.addEventListener('input',()=>{settings[i]=toggle?Number(input.checked):Number(input.value);show();draw();});
    inputs.push(show);
    sliders.append(el('label',{},el('span',{},...both(slider.label)),toggle?input:shown,...(toggle?[]:[input])));
    show();
  });
  const reset=el('button',{type:'button'},...both(words.reset));
  reset.addEventListener('click',()=>{block.sliders.forEach((s,i)=>settings[i]=s.initial);inputs.forEach(show=>show());draw();});
  sliders.append(el('div',{},reset));
  draw();
  return el('figure',{class:'move',id:'move-'+block.id},el('figcaption',{},...both(block.caption)),el('div',{class:'sides'},sliders,view));
}
function exercise(block){
  const fields=block.answers.map(answer=>{
    const input=el('input',{type:'text',autocomplete:'off',inputmode:'text','aria-label':answer.label}),mark=el('span',{class:'mark'});
    return {answer,input,mark,label:el('label',{},el('span',{},answer.label+' ='),input,mark)};
  });
  const verdict=el('span',{class:'verdict'}),more=el('ul',{class:'more'}),hints=[...block.hints];
  const button=(text,act)=>{const b=el('button',{type:'button'},...both(text));b.addEventListener('click',act);return b;};
  const check=()=>{
    let right=0,unread=false;
    for(const f of fields){
      if(!f.input.value.trim()){f.label.className='';f.mark.textContent='';continue;}
      const result=checkAnswer(f.input.value,f.answer.fraction);
      f.label.className=result==='right'?'right':'wrong';
      f.mark.textContent={right:'✓',wrong:'✗',unreadable:'?'}[result];
      right+=result==='right';
      unread||=result==='unreadable';
    }
    verdict.replaceChildren(...both(right===fields.length?words.all:unread?words.unread:words.not));
  };
  fields.forEach(f=>f.input.addEventListener('keydown',e=>{if(e.key==='Enter')check();}));
  const tell=line=>more.append(el('li',{},...both(line)));
  const buttons=el('div',{},button(words.check,check),' ',button(words.hint,()=>{if(hints.length)tell(hints.shift());}),' ',
    button(words.way,()=>{block.way.forEach(tell);block.way=[];}),verdict);
  return el('figure',{class:'exercise',id:'exercise-'+block.id},el('p',{},...both(block.question)),el('div',{class:'answers'},...fields.map(f=>f.label)),buttons,more);
}
)js";

}  // namespace regard
