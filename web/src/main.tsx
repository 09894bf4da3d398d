// The page: reads its recording, then draws what the address asks for.

import { render } from 'preact';
import './style.css';
import { followHistory } from './route.ts';
import { load } from './store.ts';
import { App } from './ui/app.tsx';

followHistory();
render(<App />, document.getElementById('app')!);
void load();
