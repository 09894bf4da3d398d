"""A client of one's own: counts that some tool gave, added to a job of `sonde serve`."""

from sonde.client import Client

client = Client()  # $SONDE_SERVER, or this machine
job = client.create(info="an example")
for misses in (10, 7):
    with client.batch(job) as batch:
        batch.count("app", "parse", {"cache-misses": misses})
        batch.bench("app", {"real": 1.5, "cache-misses": misses})
for row in client.profile(job):
    print(row["executable"], row["function"], row["events"])
print(len(client.bench(job)), "runs")
client.remove(job)
