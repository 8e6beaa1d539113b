// The keyboard: j and k move, enter opens, / searches, escape goes back.

const links = () => [...document.querySelectorAll("tbody tr[data-n] > th > a")];

// step moves the focus by one row, or goes to the next step in the view of one.
function step(by) {
  const neighbour = document.querySelector(by > 0 ? 'a[rel~="next"]' : 'a[rel~="prev"]');
  const all = links();
  if (all.length === 0) {
    neighbour?.click();
    return;
  }
  const at = all.indexOf(document.activeElement);
  const to = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  all[Math.max(0, Math.min(to, all.length - 1))].focus();
}

// back leaves a field, then a row, then the view.
function back(typing) {
  if (typing || links().includes(document.activeElement)) {
    document.activeElement.blur();
    return;
  }
  document.querySelector('a[rel~="up"]')?.click();
}

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) {
    return;
  }
  const typing = e.target.matches("input, select, textarea");
  if (e.key === "Escape") {
    back(typing);
    return;
  }
  if (typing) {
    return;
  }
  switch (e.key) {
    case "j":
      step(1);
      break;
    case "k":
      step(-1);
      break;
    case "/": {
      const field = document.querySelector('input[type="search"]');
      if (!field) {
        return;
      }
      field.focus();
      field.select();
      break;
    }
    default:
      return;
  }
  e.preventDefault();
});

// A click anywhere in a row opens it, unless it selected text.
document.addEventListener("click", (e) => {
  const row = e.target.closest("tbody tr[data-n]");
  if (row && !e.target.closest("a") && String(getSelection()) === "") {
    row.querySelector("th > a").click();
  }
});

// A choice in a list filters at once.
document.addEventListener("change", (e) => {
  if (e.target.matches(".filters select")) {
    e.target.form.requestSubmit();
  }
});
