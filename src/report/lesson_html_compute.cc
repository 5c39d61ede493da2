#include "report/lesson_html.h"

namespace regard {

const char* const kLessonCompute =
    R"js(// ---- What the engine computes (src/lesson/exploration.cc, src/lesson/answer.cc), again for every move ----
const times=(a,b)=>a.map(row=>b[0].map((_,j)=>row.reduce((sum,x,k)=>sum+x*b[k][j],0)));
// Pairs of channels, half apart, turned by position * 10000^(-2 i / channels).
function rotate(rows,positions){
  return rows.map((row,r)=>{
    const half=row.length/2,turned=row.slice();
    for(let i=0;i<half;++i){
      const angle=positions[r]*Math.pow(10000,-2*i/row.length),c=Math.cos(angle),s=Math.sin(angle);
      turned[i]=row[i]*c-row[i+half]*s;
      turned[i+half]=row[i+half]*c+row[i]*s;
    }
    return turned;
  });
}
// The head with its sliders at these settings.
function moved(explore,settings){
  const head=structuredClone(explore.head);
  explore.sliders.forEach((slider,i)=>slider.targets.forEach(t=>{
    const value=settings[i]*t.factor;
    if(t.what==='xq'||t.what==='xk'||t.what==='xv')head[t.what][t.row][t.column]=value;
    else if(t.what==='query_positions'||t.what==='key_positions')head[t.what][t.row]+=value;
    else if(t.what==='causal')head.causal=value!==0;
    else head[t.what]=value;
  }));
  return head;
}
const less=(a,b,factor=1)=>a.map((row,i)=>row.map((x,j)=>x-factor*b[i][j]));
const turned=a=>a[0].map((_,j)=>a.map(row=>row[j]));
const halfSquare=a=>a.flat().reduce((sum,x)=>sum+x*x,0)/2;
// One step against the gradients of the loss: through the weighted sum, the softmax, the dot product, the projections.
function learned(head){
  const {weights,outputs}=run({...head,rate:0}),error=less(outputs,head.target),p=weights[0];
  const q=times(head.xq,head.wq),k=times(head.xk,head.wk),v=times(head.xv,head.wv);
  const dWeights=times(error,turned(v))[0],mean=p.reduce((sum,w,j)=>sum+w*dWeights[j],0);
  const dScores=[p.map((w,j)=>w*(dWeights[j]-mean)*head.scale/head.temperature)];
  return {...head,rate:0,
    wq:less(head.wq,times(turned(head.xq),times(dScores,k)),head.rate),
    wk:less(head.wk,times(turned(head.xk),times(turned(dScores),q)),head.rate),
    wv:less(head.wv,times(turned(head.xv),times(turned(weights),error)),head.rate)};
}
function run(head){
  if(head.rate)head=learned(head);
  let q=times(head.xq,head.wq),k=times(head.xk,head.wk).map(row=>row.map(x=>x*head.key_scale));
  const v=times(head.xv,head.wv);
  if(head.rotary){q=rotate(q,head.query_positions);k=rotate(k,head.key_positions);}
  const offset=k.length-q.length;
  const scores=q.map((row,i)=>k.map((key,j)=>head.causal&&j>i+offset?-Infinity
    :row.reduce((sum,x,d)=>sum+x*key[d],0)*head.scale/head.temperature));
  const weights=scores.map(row=>{
    const most=Math.max(...row),powers=row.map(s=>Math.exp(s-most)),sum=powers.reduce((a,b)=>a+b,0);
    return powers.map(p=>p/sum);
  });
  const outputs=times(weights,v);
  return {scores,weights,outputs,loss:head.target.length?halfSquare(less(outputs,head.target)):null};
}
// 'right', 'wrong' or 'unreadable'; fractions in whole numbers, so that 0.4 is 2/5 exactly.
function checkAnswer(typed,fraction){
  const m=/^(-|\u2212)?(?:(\d{1,9})\/(\d{1,9})|(\d{1,9})?(?:[.,](\d{1,9}))?(%)?)$/.exec(typed.replace(/[ \t\r\n]/g,''));
  if(!m||(m[2]===undefined&&m[4]===undefined&&m[5]===undefined)||(m[3]!==undefined&&Number(m[3])===0))return 'unreadable';
  const [below,above]=fraction.split('/').reverse().map(Number).concat(NaN).slice(0,2);
  const truth=Number.isNaN(above)?{n:BigInt(below),d:1n}:{n:BigInt(above),d:BigInt(below)};
  let n,d,places=0;
  if(m[2]!==undefined){n=BigInt(m[2]);d=BigInt(m[3]);}
  else{
    places=m[5]===undefined?0:m[5].length;
    d=10n**BigInt(places);
    n=BigInt(m[4]||0)*d+BigInt(m[5]||0);
    if(m[6]){d*=100n;places+=2;}
  }
  if(m[1])n=-n;
  const away=n*truth.d-truth.n*d;
  if(away===0n)return 'right';
  if(places<2)return 'wrong';
  return Math.abs(Number(away))/Number(d*truth.d)<=0.5*Math.pow(10,-places)+1e-12?'right':'wrong';
}
)js";

}  // namespace regard
