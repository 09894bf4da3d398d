import { Empty } from '../ui/parts.tsx';

export function Timeline() {
  return <Empty title="Timeline" />;
}
