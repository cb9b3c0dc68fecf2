(() => {
  const box = document.getElementById("find"), told = document.getElementById("found");
  const rows = [...document.querySelectorAll("#moves tbody tr")];
  let texts = null;
  box.parentNode.hidden = false;
  box.addEventListener("input", () => {
    texts ??= rows.map(row => [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase());
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, index) => {
      row.hidden = !words.every(word => texts[index].includes(word));
      count += !row.hidden;
    });
    told.textContent = words.length ? `${count} of ${rows.length}` : "";
  });
})();
