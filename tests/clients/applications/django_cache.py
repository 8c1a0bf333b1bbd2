# A Django site's cache and sessions with django-redis: `python django_cache.py PORT`.
import sys

import django
from django.conf import settings

backend = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"redis://127.0.0.1:{sys.argv[1]}/1"}
settings.configure(CACHES={"default": backend}, SESSION_ENGINE="django.contrib.sessions.backends.cache")
django.setup()

from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import cache
from django_redis import get_redis_connection

cache.clear()
cache.set("page", {"title": "home"}, timeout=60)
assert cache.get("page") == {"title": "home"} and 0 < cache.ttl("page") <= 60
assert not cache.add("page", "other") and cache.add("other", 1, timeout=None) and cache.ttl("other") is None
assert cache.incr("other", 4) == 5 and cache.decr("other") == 4
cache.set_many({f"user:{number}": number for number in range(100)})
assert cache.get_many(["user:1", "user:2", "nobody"]) == {"user:1": 1, "user:2": 2}
assert sorted(cache.iter_keys("user:1*")) == sorted(["user:1", *(f"user:{number}" for number in range(10, 20))])
assert cache.delete_pattern("user:*") == 100 and cache.keys("user:*") == []
assert cache.touch("page", 5) and cache.ttl("page") <= 5 and cache.persist("page") and cache.ttl("page") is None
assert cache.get_or_set("late", lambda: "made", 60) == "made"
with cache.lock("door", timeout=5):
    assert not cache.lock("door", blocking=False).acquire(blocking=False)
assert cache.lock("door", blocking=False).acquire()

session = SessionStore()
session["name"] = "ann"
session.set_expiry(60)
session.save()
assert SessionStore(session.session_key)["name"] == "ann"
session.flush()
assert not SessionStore().exists(session.session_key or "gone")
assert get_redis_connection().ping()
print("django-redis is content")
