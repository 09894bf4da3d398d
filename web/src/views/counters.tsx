import { Empty } from '../ui/parts.tsx';

export function Counters() {
  return <Empty title="Counters" />;
}
