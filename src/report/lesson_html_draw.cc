#include "report/lesson_html.h"

namespace regard {

const char* const kLessonDraw =
    R"js(// ---- Elements, numbers, pictures ----
function el(tag,attributes={},...children){
  const svg=['svg','g','path','line','circle','text','title','rect'].includes(tag);
  const e=svg?document.createElementNS('http://www.w3.org/2000/svg',tag):document.createElement(tag);
  for(const [name,value] of Object.entries(attributes))e.setAttribute(name,value);
  e.append(...children);
  return e;
}
// W_Q with its letter below the line.
const lowered=text=>text.split(/_([A-Z]|h\b)/).map((part,i)=>i%2?el('sub',{},part):part);
// Both languages; the page's rules show one.
const both=text=>text.en===text.zh?lowered(text.en):[el('span',{class:'en',lang:'en'},...lowered(text.en)),el('span',{class:'zh',lang:'zh-Hans'},...lowered(text.zh))];
const svgBoth=(text,attributes)=>text.en===text.zh?[el('text',attributes,text.en)]
  :['en','zh'].map(l=>el('text',{...attributes,class:(attributes.class||'')+' '+l},text[l]));
function decimal(x,digits=4){
  if(x===null||x===undefined)return '–';
  if(!Number.isFinite(x))return x<0?'−∞':'∞';
  let text=x!==0&&(Math.abs(x)<1e-4||Math.abs(x)>=1e6)?x.toExponential(2):String(Number(x.toPrecision(digits)));
  return text.replace('-','−').replace('e−','e-');
}
// numbers: {shape, number, fraction, exact}; the one at these indices.
const at=(n,...i)=>({number:i.reduce((a,j)=>a[j],n.number),fraction:i.reduce((a,j)=>a[j],n.fraction),exact:i.reduce((a,j)=>a[j],n.exact)});
const scalar=n=>({number:n.number,fraction:n.fraction,exact:n.exact});
function number(x){
  const text=x.exact===null?decimal(x.number):x.exact;
  const m=/^(-?)(\d+)\/(\d+)(.*)$/.exec(text);
  const e=el('span',{class:'number',title:x.number===null?'−∞':String(x.number),'data-value':String(x.number)});
  if(m)e.append(m[1]?'−':'',el('span',{class:'fraction'},el('span',{},m[2]),el('span',{},m[3])),m[4]);
  else e.append(x.number===null&&x.exact===null?'−∞':text.replace('-','−'));
  return e;
}
const shade=(x,largest)=>x===null||!Number.isFinite(x)||largest===0?'background:var(--none)'
  :`background:rgba(var(--${x<0?'cool':'warm'}),${(0.04+0.66*Math.abs(x)/largest).toFixed(3)})`;
function matrix(name,n,rows,columns,labels){
  const [R,C]=n.shape,cells=n.number.flat().filter(x=>x!==null).map(Math.abs),largest=Math.max(0,...cells),wide=C>8;
  const table=el('table');
  if(columns.length)table.append(el('thead',{},el('tr',{},...(rows.length?[el('th')]:[]),...columns.map(c=>el('th',{title:c},c)))));
  for(let r=0;r<R;++r){
    const tr=el('tr',{},...(rows.length?[el('th',{title:rows[r]},rows[r])]:[]));
    for(let c=0;c<C;++c){
      const x=at(n,r,c),td=el('td',{style:shade(x.number,largest),title:String(x.number)});
      td.append(wide?(x.number<0.05?'':decimal(x.number,1)):number(x));
      tr.append(td);
    }
    table.append(tr);
  }
  return el('div',{class:'matrix'+(wide?' wide':'')},el('div',{class:'name'},...name),table);
}
// A band from each reader to each key, as thick as its weight; at both ends bands lie side by side.
function reads(readers,keys,weights){
  const thick=22,row=46,left=64,right=300,top=26,height=top*2+row*(Math.max(readers.length,keys.length)-1);
  const y=(i,n)=>height/2+(i-(n-1)/2)*row;
  const widest=Math.max(...keys.map(k=>k.length))*9,width=right+widest+(readers.length===1?72:24);
  const picture=el('svg',{viewBox:`0 0 ${width} ${height}`,width,height,role:'img'});
  const taken=keys.map((_,j)=>-thick/2*weights.reduce((sum,w)=>sum+w[j],0));
  readers.forEach((reader,i)=>{
    let from=-thick/2;
    picture.append(el('text',{x:left-12,y:y(i,readers.length)+5,'text-anchor':'end'},reader));
    keys.forEach((key,j)=>{
      const w=weights[i][j],a=y(i,readers.length)+from+w*thick/2,b=y(j,keys.length)+taken[j]+w*thick/2,middle=(left+right)/2;
      from+=w*thick;
      taken[j]+=w*thick;
      if(w>0.0005)picture.append(el('path',{class:'read r'+i%3,d:`M${left} ${a.toFixed(1)}C${middle} ${a.toFixed(1)} ${middle} ${b.toFixed(1)} ${right} ${b.toFixed(1)}`,
        'stroke-width':Math.max(w*thick,0.5).toFixed(2)},el('title',{},`${reader} → ${key}: ${decimal(w)}`)));
      if(readers.length===1)picture.append(el('text',{class:'faint',x:right+widest+18,y:y(j,keys.length)+5},decimal(w,2)));
    });
  });
  keys.forEach((key,j)=>picture.append(el('text',{x:right+12,y:y(j,keys.length)+5},key)));
  return picture;
}
function bars(block){
  const grid=el('div',{class:'bars'});
  block.series.forEach((series,s)=>{
    const largest=Math.max(...series.numbers.number.flat().map(Math.abs));
    grid.append(el('div',{class:'series'},...both(series.name)));
    block.labels.forEach((label,i)=>{
      const n=series.numbers,x=n.shape.length===2?at(n,0,i):at(n,i);
      grid.append(el('span',{},label),el('i',{class:s===0&&block.series.length>1?'cool':'',style:`width:${Math.abs(x.number)/largest*100}%`}),number(x));
    });
  });
  return grid;
}
function lines(block){
  const W=620,H=300,L=70,R=150,T=16,B=40;
  const tx=block.log_x?Math.log10:x=>x,ty=block.log_y?Math.log10:y=>y;
  const points=block.series.flatMap(s=>s.x.map((x,i)=>[tx(x),ty(s.y[i])])).filter(p=>p.every(Number.isFinite));
  const across=block.series.flatMap(s=>s.x).map(tx),[x0,x1]=[Math.min(...across),Math.max(...across)];
  let [y0,y1]=[Math.min(...points.map(p=>p[1])),Math.max(...points.map(p=>p[1]))];
  if(!block.log_y)y0=Math.min(0,y0);
  if(y1===y0)y1=y0+1;
  const X=x=>L+(tx(x)-x0)/(x1-x0||1)*(W-L-R),Y=y=>H-B-(ty(y)-y0)/(y1-y0)*(H-T-B);
  const picture=el('svg',{viewBox:`0 0 ${W} ${H}`,width:W,height:H,role:'img'});
  const ticks=block.log_y?Array.from({length:Math.floor(y1)-Math.ceil(y0)+1},(_,i)=>10**(Math.ceil(y0)+i))
    :Array.from({length:5},(_,i)=>y0+(y1-y0)*i/4);
  for(const t of ticks)picture.append(el('line',{class:'axis',x1:L,x2:W-R,y1:Y(t),y2:Y(t)}),el('text',{class:'faint',x:L-8,y:Y(t)+4,'text-anchor':'end'},decimal(t,2)));
  for(const x of [...new Set(block.series.flatMap(s=>s.x))])
    picture.append(el('text',{class:'faint',x:X(x),y:H-B+18,'text-anchor':'middle'},decimal(x,6)));
  picture.append(...svgBoth(block.x,{class:'faint',x:(L+W-R)/2,y:H-4,'text-anchor':'middle'}));
  const ends=[];
  block.series.forEach((series,s)=>{
    const shown=series.x.map((x,i)=>[X(x),series.y[i]]).filter(p=>p[1]!==null&&Number.isFinite(ty(p[1]))).map(p=>[p[0],Y(p[1])]);
    if(!shown.length)return;
    picture.append(el('path',{class:'s'+s%2,d:'M'+shown.map(p=>p.map(z=>z.toFixed(1)).join(' ')).join('L')}));
    shown.forEach((p,i)=>picture.append(el('circle',{class:'s'+s%2,cx:p[0],cy:p[1],r:3.2},el('title',{},`${decimal(series.x[i],6)}: ${decimal(series.y[i])}`))));
    if(shown.at(-1)[0]<W-R-1){  // where others go on, its name stands before its end
      picture.append(...svgBoth(series.name,{class:'s'+s%2,x:shown.at(-1)[0]-10,y:Math.max(shown.at(-1)[1]-4,13),'text-anchor':'end'}));
      return;
    }
    let end=shown.at(-1)[1]+4;
    const way=end<40?17:-17;
    while(ends.some(e=>Math.abs(e-end)<16))end+=way;
    end=Math.max(end,13);
    ends.push(end);
    picture.append(...svgBoth(series.name,{class:'s'+s%2,x:Math.min(shown.at(-1)[0]+10,W-R+10),y:end}));
  });
  return picture;
}
)js";

}  // namespace regard
