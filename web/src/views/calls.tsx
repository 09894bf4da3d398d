import { Empty } from '../ui/parts.tsx';

export function Calls() {
  return <Empty title="Calls" />;
}
