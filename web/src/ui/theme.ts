// Light or dark: as the system has it, or as was chosen here.

import { computed, signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

function kept(): Theme {
  try {
    const theme = localStorage.getItem('sonde-theme');
    return theme === 'light' || theme === 'dark' ? theme : 'auto';
  } catch {
    return 'auto'; // files may have no storage
  }
}

const system = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(system.matches);
system.addEventListener('change', () => (systemDark.value = system.matches));

export const theme = signal<Theme>(kept());
export const dark = computed(() => (theme.value === 'auto' ? systemDark.value : theme.value === 'dark'));

export function chooseTheme(next: Theme): void {
  theme.value = next;
  try {
    if (next === 'auto') localStorage.removeItem('sonde-theme');
    else localStorage.setItem('sonde-theme', next);
  } catch {
    // it holds until the page is closed
  }
}
