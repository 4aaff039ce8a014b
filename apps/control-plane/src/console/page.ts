/** The console's page: one file without a build, which reads the JSON routes and refreshes itself. */
export const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Millrace</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; }
  table { border-collapse: collapse; width: 100%; }
  th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
  td.number, th.number { text-align: right; }
  .state { font-weight: 600; } .failed { color: #c33; } .running, .finished { color: #2a7; }
  .note { opacity: .7; } .error { color: #c33; }
</style>
</head>
<body>
<h1>Millrace</h1>
<p id="problem" class="error" role="alert"></p>
<main id="jobs"><p class="note">Loading …</p></main>
<script>
const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const text = (value) => String(value ?? '–').replace(/[&<>"']/g, (c) => escapes[c]);
const time = (ms) => (ms ? new Date(ms).toLocaleString() : '–');
const row = (cells) => '<tr>' + cells.map((c) => typeof c === 'number' ? '<td class="number">' + c.toLocaleString() + '</td>' : '<td>' + c + '</td>').join('') + '</tr>';
const table = (heads, rows) => '<table><thead><tr>' + heads.map((h) => '<th>' + h + '</th>').join('') + '</tr></thead><tbody>' + rows.join('') + '</tbody></table>';

function operators(status) {
  const list = status.description?.operators ?? [];
  if (list.length === 0) return '';
  const inputs = (uid) => status.description.edges.filter((e) => e.to === uid).map((e) => text(e.from) + ' (' + text(e.partitioning) + ')').join(', ');
  return '<h3>Operators</h3>' + table(['Operator', 'Kind', 'Chain', 'State', 'Reads from'],
    list.map((o) => row([text(o.uid), text(o.kind), o.chain, o.stateful ? 'keyed' : '–', inputs(o.uid) || '–'])));
}

function checkpoints(view) {
  const rounds = [...(view.loop?.recent ?? [])].reverse();
  const kept = new Set((view.record?.checkpoints ?? []).map((c) => c.checkpoint));
  const counts = view.loop ? view.loop.roundsDone + ' done, ' + view.loop.roundsFailed + ' failed in this attempt. ' : '';
  const failure = view.loop?.lastFailure ? ' Last failure: ' + text(view.loop.lastFailure) : '';
  return '<h3>Checkpoints</h3><p class="note">' + counts + 'Kept: ' + ([...kept].join(', ') || 'none') + '.' + failure + '</p>' +
    (rounds.length ? table(['Round', 'Time (ms)', 'Bytes put', 'Bytes linked', 'Path'],
      rounds.map((r) => row([r.checkpoint, r.durationMs, r.bytesPut, r.bytesLinked, text(r.path)]))) : '');
}

const seen = {};
function live(view) {
  const l = view.live;
  if (!l) return '';
  const id = view.status.id, now = performance.now(), before = seen[id];
  const rate = before ? Math.max(0, Math.round((l.recordsRead - before.records) * 1000 / (now - before.at))) : 0;
  seen[id] = { records: l.recordsRead, at: now };
  const mark = (ms) => ms === null ? '–' : ms >= 8.64e15 ? 'end' : new Date(ms).toISOString();
  return '<h3>Now</h3><p>' + l.recordsRead.toLocaleString() + ' records read, ' + rate.toLocaleString() + '/s, ' + l.recordsWritten.toLocaleString() + ' written, watermark ' + mark(l.watermarkMs) + '</p>' +
    table(['Subtask', 'Read', 'Written', 'In flight', 'Buffered', 'Watermark'],
      l.slots.map((s) => row([s.subtask, s.recordsIn, s.recordsOut, s.inFlight, s.buffered, mark(s.watermarkMs)])));
}

function job(view) {
  const s = view.status;
  const slots = s.plan ? s.plan.slots.map((slot, i) => i + ' on ' + text(slot.runnerId) + ' (' + text(slot.address) + ')').join(', ') : '–';
  return '<section><h2>' + text(s.id) + ' <span class="state ' + text(s.state) + '">' + text(s.state) + '</span></h2>' +
    '<p>' + text(s.details) + '</p>' +
    table(['Job', 'Generation', 'Parallelism', 'Failures', 'Subtasks'], [row([text(s.job), s.generation, s.parallelism, s.failures, slots])]) +
    (s.lastFailure ? '<p class="error">Last failure: ' + text(s.lastFailure) + '</p>' : '') +
    live(view) + operators(s) + checkpoints(view) + '</section>';
}

async function get(path) {
  const answer = await fetch(path);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.message ?? answer.statusText);
  return body;
}

async function refresh() {
  try {
    const jobs = await get('api/jobs');
    const open = jobs.filter((j) => j.endedMs === null);
    const ended = jobs.filter((j) => j.endedMs !== null);
    const views = await Promise.all(open.map(async (j) => {
      const path = 'api/jobs/' + encodeURIComponent(j.id);
      const view = await get(path).catch(() => null);
      return view && { ...view, live: await get(path + '/live').catch(() => null) };
    }));
    document.getElementById('jobs').innerHTML =
      (views.filter(Boolean).map(job).join('') || '<p class="note">No job is running.</p>') +
      (ended.length ? '<h2>Ended</h2>' + table(['Job', 'State', 'Generation', 'Started', 'Ended'],
        ended.map((j) => row([text(j.id), '<span class="state ' + text(j.state) + '">' + text(j.state) + '</span>', j.generation ?? 0, time(j.startedMs), time(j.endedMs)]))) : '');
    document.getElementById('problem').textContent = '';
  } catch (error) {
    document.getElementById('problem').textContent = error.message;
  }
  setTimeout(refresh, 2000);
}
refresh();
</script>
</body>
</html>
`;
