"""Opens the lesson's page in Chromium, does what a person would do there, and tells what it then shows.

Everything is done by a script at the end of a copy of the page; what it found is read from the page's final state, so no
driver is needed beside the browser.
"""

import html
import json
import os
import re
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

# Before anything else runs: what a console would complain about.
WATCH = """<script>
window.complaints=[];
addEventListener('error',e=>complaints.push(String(e.message)));
addEventListener('unhandledrejection',e=>complaints.push(String(e.reason)));
for(const how of ['error','warn'])console[how]=(...words)=>complaints.push(words.join(' '));
addEventListener('securitypolicyviolation',e=>complaints.push(e.blockedURI));
</script>
"""

# At its end: every slider to each checked place, every way of typing an answer, both languages, the way to a solution.
DRIVE = """<script>
{
  const found={complaints,explorations:{},exercises:{},languages:{}};
  const steps=JSON.parse(document.getElementById('lesson').textContent).steps;
  const tell=(e,kind)=>e.dispatchEvent(new Event(kind,{bubbles:true}));
  const shown=m=>[...m.querySelectorAll('tbody tr, table>tr')].map(tr=>[...tr.querySelectorAll('.number')].map(n=>Number(n.dataset.value)));
  for(const block of steps.flatMap(s=>s.blocks)){
    if(block.kind==='exploration'){
      const figure=document.getElementById('move-'+block.id),inputs=[...figure.querySelectorAll('.sliders input')];
      found.explorations[block.id]=block.checks.map(check=>{
        check.settings.forEach((value,i)=>{
          if(inputs[i].type==='checkbox')inputs[i].checked=value!==0;else inputs[i].value=value;
          tell(inputs[i],'input');
        });
        const [weights,outputs,loss]=[...figure.querySelectorAll('.matrix')].map(shown);
        return {weights,outputs,loss:loss===undefined?null:loss[0][0],bands:figure.querySelectorAll('svg path.read').length};
      });
      figure.querySelector('.sliders button').click();
      const [weights]=[...figure.querySelectorAll('.matrix')].map(shown);
      found.explorations[block.id].push({reset:weights});
    }
    if(block.kind==='exercise'){
      const figure=document.getElementById('exercise-'+block.id),inputs=[...figure.querySelectorAll('.answers input')];
      const [check,hint,way]=figure.querySelectorAll('button');
      const marks=block.checks.map(one=>{
        inputs.forEach(i=>i.value='');
        inputs[one.answer].value=one.typed;
        check.click();
        return figure.querySelectorAll('.answers .mark')[one.answer].textContent;
      });
      block.answers.forEach((a,i)=>inputs[i].value=a.fraction);
      check.click();
      const verdict=figure.querySelector('.verdict').textContent;
      hint.click();
      way.click();
      found.exercises[block.id]={marks,verdict,more:figure.querySelectorAll('.more li').length};
    }
  }
  for(const button of document.querySelectorAll('.switch button')){
    button.click();
    found.languages[button.dataset.language]={lang:document.documentElement.lang,heading:document.querySelector('h2').innerText,
      sections:document.querySelectorAll('section').length,title:document.title,text:document.querySelector('main').innerText.length};
  }
  document.body.append(Object.assign(document.createElement('pre'),{id:'found',textContent:JSON.stringify(found)}));
}
</script>
"""


def browser():
    """The path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def drive(page, folder):
    """What the page shows after all that."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert "<head>\n" in text and text.count("</body>") == 1
    driven = os.path.join(folder, "driven.html")
    with open(driven, "w", encoding="utf-8") as file:
        file.write(text.replace("<head>\n", "<head>\n" + WATCH, 1).replace("</body>", DRIVE + "</body>"))
    home = os.path.join(folder, "browser")
    process = subprocess.run(
        [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + home,
         "--virtual-time-budget=20000", "--dump-dom", "file://" + driven],
        env={**os.environ, "HOME": folder}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    match = re.search(r'<pre id="found">(.*?)</pre>', process.stdout, re.DOTALL)
    assert match, "the page did not run to its end: " + process.stderr[-2000:]
    return json.loads(html.unescape(match.group(1)))
