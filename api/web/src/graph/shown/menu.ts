// SPDX-License-Identifier: Apache-2.0
// A menu at a place on the page with the keys of desktop menus: arrows, first letters, Escape.

export interface Entry {
  label: string;
  hint?: string; // a key, or an explanation
  act: () => void;
}

// A list of groups with lines between them. `title` names the menu's subject.
export function openMenu(title: string, groups: readonly (readonly Entry[])[], x: number, y: number, returnTo: HTMLElement) {
  const menu = document.createElement("div");
  menu.className = "frame-menu";
  menu.setAttribute("role", "menu");
  menu.setAttribute("aria-label", title);
  menu.tabIndex = -1;
  const head = document.createElement("div");
  head.className = "frame-menu-head";
  head.setAttribute("role", "presentation");
  head.textContent = title;
  menu.append(head);
  const items: HTMLElement[] = [];
  groups.filter((group) => group.length > 0).forEach((group, index) => {
    if (index > 0) {
      const line = document.createElement("div");
      line.className = "frame-menu-line";
      line.setAttribute("role", "separator");
      menu.append(line);
    }
    for (const { label, hint, act } of group) {
      const item = document.createElement("button");
      item.type = "button";
      item.setAttribute("role", "menuitem");
      item.tabIndex = -1;
      item.append(label);
      if (hint !== undefined) {
        const small = document.createElement("small");
        small.textContent = hint;
        item.append(small);
      }
      item.addEventListener("click", () => {
        close(true);
        act();
      });
      items.push(item);
      menu.append(item);
    }
  });

  let isOpen = true;
  function close(returnsFocus: boolean) {
    if (!isOpen) return;
    isOpen = false;
    menu.remove();
    document.removeEventListener("pointerdown", outside, true);
    removeEventListener("resize", away);
    removeEventListener("blur", away);
    if (returnsFocus) returnTo.focus({ preventScroll: true });
  }
  const away = () => close(false);
  const outside = (event: PointerEvent) => {
    if (!menu.contains(event.target as Node)) close(false);
  };
  const move = (to: number) => items[(to + items.length) % items.length]?.focus();
  menu.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement as HTMLElement);
    if (event.key === "ArrowDown") move(at + 1);
    else if (event.key === "ArrowUp") move(at <= 0 ? items.length - 1 : at - 1);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(items.length - 1);
    else if (event.key === "Escape" || event.key === "Tab") close(true);
    else if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const letter = event.key.toLowerCase();
      for (let i = 1; i <= items.length; i++) {
        const item = items[(at + i) % items.length];
        if (item.textContent!.toLowerCase().startsWith(letter)) {
          item.focus();
          break;
        }
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  menu.addEventListener("contextmenu", (event) => event.preventDefault());

  document.querySelector("main")!.append(menu);
  const { width, height } = menu.getBoundingClientRect();
  const margin = 6;
  const left = Math.max(margin, Math.min(x, innerWidth - width - margin));
  const top = y + height + margin > innerHeight ? Math.max(margin, Math.min(y, innerHeight) - height) : y;
  menu.style.left = `${Math.round(left)}px`;
  menu.style.top = `${Math.round(top)}px`;
  document.addEventListener("pointerdown", outside, true);
  addEventListener("resize", away);
  addEventListener("blur", away);
  items[0]?.focus();
  return close;
}
