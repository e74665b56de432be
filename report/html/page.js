// --- The page --------------------------------------------------------------------------------------------------------
document.querySelector('noscript')?.remove();
errorTable();
stepBar();
pipelines();
timelines();
facts();
resourceCharts();
pcieCharts();
memoryCharts();
idleBars();
losses();
addEventListener('resize', redraw);
addEventListener('scroll', () => { hush(); requestAnimationFrame(() => drawStale(false)); }, {passive: true});
addEventListener('beforeprint', () => drawStale(true));
addEventListener('keydown', e => { if (e.key === 'Escape') hush(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  newScheme();
  document.querySelectorAll('.bar span').forEach(piece => { piece.style.color = inkOn(piece.style.backgroundColor.match(/--(\w+)/)[1]); });
  redraw();
});
location.hash === '#all' ? all() : oneStep();
redrawNow();
