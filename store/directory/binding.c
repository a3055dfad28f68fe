/* Binds and evictions gather; a batch is judged against the journal and the pods, written and synced at once,
 * then delivered, then answered. */
#include "store/directory/binding.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "io/loop.h"
#include "store/directory/delivery.h"

struct bind_request {
        struct bind_request *next;
        char *namespace_, *name, *uid, *node; /* node NULL: an eviction */
        json_t *annotations;
        unsigned grace_sec;
        store_answer answer;
        void *userdata;
        bool written; /* its line is in the batch */
};

static void deliver_pod(struct store_dir *d, const char *pod)
{
        struct object *object = objects_find(&d->objects, STORE_POD, pod);

        if (object != NULL)
                delivery_again(d, object);
}

static void on_line(void *userdata, const char *line, size_t size_bytes)
{
        struct store_dir *d = userdata;
        json_t *json = json_read(line, size_bytes, 0, NULL);
        char key[OBJECTS_KEY_BYTES];
        const struct commitment *c = NULL;
        struct err err = { 0 };

        if (objects_key(key, STORE_POD, json_string_value(json_object_get(json, "namespace")),
                        json_string_value(json_object_get(json, "name"))))
                c = commitments_take(&d->commitments, json, key + 1, &err);
        if (err.code < 0)
                store_trouble(&d->store, STORE_POD, "%s", err.msg);
        if (c == NULL)
                store_trouble(&d->store, STORE_POD,
                              "a line of a journal cannot be read and is left out: %.80s", line);
        else
                deliver_pod(d, c->pod);
        json_decref(json);
}

/* A journal was replaced or removed: both are read anew, and whoever they spoke of is delivered again. */
static void on_forget(void *userdata)
{
        struct store_dir *d = userdata;
        struct commitments old = d->commitments;

        d->commitments = (struct commitments){ 0 };
        for (struct name_map_entry *e = name_map_first(&old.by_pod); e != NULL;
             e = name_map_next(&old.by_pod, e))
                deliver_pod(d, ((struct commitment *) e)->pod);
        commitments_free(&old);
        store_trouble(&d->store, STORE_POD, "a journal was replaced or removed: what it said is forgotten");
}

static void say_damage(struct store_dir *d, struct journal *j)
{
        if (j->damage[0] != '\0' && !j->damage_said)
                store_trouble(&d->store, STORE_POD, "%s; what can be read of it counts, and nothing is bound",
                              j->damage);
        j->damage_said = j->damage[0] != '\0';
}

/* What both say was forgotten with the other: it is read from its beginning. */
static int read_anew(struct store_dir *d, struct journal *j, struct err *err)
{
        journal_close(j);
        return journal_read(j, on_forget, on_line, d, err);
}

int binding_read_journals(struct store_dir *d, struct err *err)
{
        int r = journal_read(&d->bindings, on_forget, on_line, d, err);

        if (r > 0)
                journal_close(&d->evictions);
        if (r >= 0)
                r = journal_read(&d->evictions, on_forget, on_line, d, err);
        if (r > 0)
                r = read_anew(d, &d->bindings, err);
        say_damage(d, &d->bindings);
        say_damage(d, &d->evictions);
        return r < 0 ? r : 0;
}

static void request_free(struct bind_request *q)
{
        if (q == NULL)
                return;
        free(q->namespace_);
        free(q->name);
        free(q->uid);
        free(q->node);
        json_decref(q->annotations);
        free(q);
}

static void answer(struct store_dir *d, const struct bind_request *q, int result, const char *sentence)
{
        store_answer_later(&d->store, q->answer, q->userdata, result, "%s", sentence);
}

/* Return: 1 to be written, 0 already so, negative errno. */
static int judge_node(const struct bind_request *q, const struct object *pod, const struct commitment *c,
                      struct err *err)
{
        const char *node = c != NULL && c->node != NULL ? c->node : pod->node;

        if (node != NULL && strcmp(node, q->node) == 0)
                return 0;
        if (node != NULL)
                return err_set(err, -EALREADY, "pod '%s' is bound to node '%s'", pod->key + 1, node);
        if (pod->terminating || (c != NULL && c->deletion_time != NULL))
                return err_set(err, -ESTALE, "pod '%s' is being deleted", pod->key + 1);
        return 1;
}

static int judge(struct store_dir *d, const struct bind_request *q, const struct object **ret_pod,
                 struct err *err)
{
        char key[OBJECTS_KEY_BYTES];
        const struct object *pod;
        const struct commitment *c;

        if (!d->synced)
                return err_set(err, -EAGAIN, "the store is still being read");
        if (!objects_key(key, STORE_POD, q->namespace_, q->name))
                return err_set(err, -EINVAL, "'%s' is no name of a pod", q->name);
        pod = objects_find(&d->objects, STORE_POD, key + 1);
        if (pod == NULL || !pod->delivered)
                return err_set(err, -ENOENT, "pod '%s' is not in the store", key + 1);
        if (q->uid[0] != '\0' && pod->uid != NULL && strcmp(q->uid, pod->uid) != 0)
                return err_set(err, -ESTALE,
                               "pod '%s' has uid '%s', not '%s': it was replaced by another of its name",
                               key + 1, pod->uid, q->uid);
        *ret_pod = pod;
        c = commitments_of(&d->commitments, pod->uid, pod->key + 1);
        if (q->node != NULL)
                return judge_node(q, pod, c, err);
        return pod->terminating || (c != NULL && c->deletion_time != NULL) ? 0 : 1;
}

/* Return: NULL where something has no place in it: a line that lacks what it says would be answered as
 * written. */
static json_t *line_of(struct store_dir *d, const struct bind_request *q, const struct object *pod)
{
        const char *slash = strchr(pod->key, '/');
        uint64_t now = loop_realtime_usec(d->store.loop);
        char time[TIMESTAMP_BYTES];
        json_t *line;
        int r = 0;

        assert(slash != NULL); /* a pod has a namespace */
        line = json_pack("{s:s, s:s%, s:s}", "uid", pod->uid != NULL ? pod->uid : "", "namespace",
                         pod->key + 1, (int) (slash - pod->key - 1), "name", slash + 1);
        if (line == NULL)
                return NULL;
        if (q->node != NULL)
                r |= json_object_set_new(line, "node", json_string(q->node));
        r |= json_object_set_new(line, "time", json_string(timestamp_format(now, time)));
        if (q->node == NULL) {
                r |= json_object_set_new(
                        line, "deletionTimestamp",
                        json_string(timestamp_format(now + q->grace_sec * UINT64_C(1000000), time)));
                r |= json_object_set_new(line, "gracePeriodSeconds", json_integer(q->grace_sec));
        }
        if (json_object_size(q->annotations) > 0)
                r |= json_object_set(line, "annotations", q->annotations);
        if (r == 0)
                return line;
        json_decref(line);
        return NULL;
}

/* Is another request of this batch about the same pod? Then it is judged in the next one. */
static bool is_in_batch(const struct bind_request *batch, const struct bind_request *q)
{
        for (; batch != q; batch = batch->next)
                if (batch->written && strcmp(batch->name, q->name) == 0 &&
                    strcmp(batch->namespace_, q->namespace_) == 0)
                        return true;
        return false;
}

static void write_line(struct store_dir *d, struct bind_request *q, struct text *lines)
{
        const struct object *pod = NULL;
        struct err err = { 0 };
        CLEANUP(free_p) char *text = NULL;
        json_t *line;
        int r = judge(d, q, &pod, &err);

        if (r <= 0) {
                answer(d, q, r, err.msg);
                return;
        }
        assert(pod != NULL);
        line = line_of(d, q, pod);
        text = line != NULL ? json_dumps(line, JSON_COMPACT) : NULL;
        json_decref(line);
        if (text == NULL) {
                answer(d, q, -EINVAL, "the binding is not valid UTF-8, or memory is out");
                return;
        }
        text_append(lines, text);
        text_append_char(lines, '\n');
        q->written = true;
}

/* What is committed is applied through the same door as what others commit: by reading the line. */
static void apply(struct store_dir *d, const struct text *lines)
{
        const char *at = lines->data;

        while (at != NULL && *at != '\0') {
                const char *end = strchr(at, '\n');

                on_line(d, at, (size_t) (end - at));
                at = end + 1;
        }
}

static void answer_written(struct store_dir *d, struct bind_request *batch, int result, const char *sentence)
{
        for (struct bind_request *q = batch; q != NULL; q = q->next)
                if (q->written)
                        answer(d, q, result, sentence);
}

static void commit(struct store_dir *d, struct journal *j, struct bind_request *batch)
{
        struct text lines = { 0 };
        struct err err = { 0 };
        int r = journal_lock(j, on_forget, on_line, d, &err);

        if (r > 0 && (r = read_anew(d, j == &d->bindings ? &d->evictions : &d->bindings, &err)) < 0)
                journal_unlock(j);
        for (struct bind_request *q = batch; q != NULL; q = q->next) {
                if (r < 0)
                        answer(d, q, r, err.msg);
                else if (is_in_batch(batch, q))
                        answer(d, q, -EAGAIN, "another request about this pod is being written; ask again");
                else
                        write_line(d, q, &lines);
        }
        if (r < 0)
                return;
        if (lines.failed)
                r = err_set(&err, -ENOMEM, "out of memory");
        if (lines.failed)
                journal_unlock(j);
        else
                r = journal_commit(j, lines.data, lines.size_bytes, &err);
        if (r == 0)
                apply(d, &lines);
        answer_written(d, batch, r, err.msg);
        text_free(&lines);
}

/* Splits what has gathered into binds and evictions; each is one batch with one sync. */
static int on_binding(sd_event_source *source, void *userdata)
{
        struct store_dir *d = userdata;
        struct bind_request *all = d->binds, *batches[2] = { NULL, NULL },
                            **ends[2] = { &batches[0], &batches[1] };

        (void) source;
        d->binds = NULL;
        d->binds_end = &d->binds;
        while (all != NULL) {
                struct bind_request ***end = &ends[all->node != NULL ? 0 : 1];

                **end = all;
                *end = &all->next;
                all = all->next;
                **end = NULL;
        }
        if (batches[0] != NULL)
                commit(d, &d->bindings, batches[0]);
        if (batches[1] != NULL)
                commit(d, &d->evictions, batches[1]);
        for (int i = 0; i < 2; i++)
                while (batches[i] != NULL) {
                        struct bind_request *q = batches[i];

                        batches[i] = q->next;
                        request_free(q);
                }
        return 0;
}

static void enqueue(struct store_dir *d, struct bind_request *q, const char *namespace_, const char *name,
                    const char *uid)
{
        if (q != NULL) {
                q->namespace_ = strdup(namespace_ != NULL ? namespace_ : "");
                q->name = strdup(name);
                q->uid = strdup(uid != NULL ? uid : "");
        }
        if (q == NULL || q->namespace_ == NULL || q->name == NULL || q->uid == NULL) {
                if (q != NULL)
                        answer(d, q, -ENOMEM, "out of memory");
                request_free(q);
                return;
        }
        *d->binds_end = q;
        d->binds_end = &q->next;
        (void) sd_event_source_set_enabled(d->binding, SD_EVENT_ONESHOT);
}

void binding_bind(struct store *store, const struct store_binding *binding, store_answer answered,
                  void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct bind_request *q = calloc(1, sizeof(*q));

        if (q != NULL) {
                q->answer = answered;
                q->userdata = userdata;
                q->node = strdup(binding->node);
                q->annotations = binding->annotations != NULL ? json_deep_copy(binding->annotations) : NULL;
        }
        if (q == NULL || q->node == NULL || q->node[0] == '\0') {
                store_answer_later(store, answered, userdata,
                                   q == NULL || q->node == NULL ? -ENOMEM : -EINVAL,
                                   q == NULL || q->node == NULL ? "out of memory" : "a bind needs a node");
                request_free(q);
                return;
        }
        enqueue(d, q, binding->namespace_, binding->name, binding->uid);
}

void binding_evict(struct store *store, const char *namespace_, const char *name, const char *uid,
                   unsigned grace_sec, store_answer answered, void *userdata)
{
        struct store_dir *d = (struct store_dir *) store;
        struct bind_request *q = calloc(1, sizeof(*q));

        if (q == NULL) {
                store_answer_later(store, answered, userdata, -ENOMEM, "out of memory");
                return;
        }
        q->answer = answered;
        q->userdata = userdata;
        q->grace_sec = grace_sec;
        enqueue(d, q, namespace_, name, uid);
}

int binding_start(struct store_dir *d)
{
        int r = sd_event_add_defer(d->store.loop, &d->binding, on_binding, d);

        if (r >= 0)
                r = sd_event_source_set_priority(d->binding,
                                                 SD_EVENT_PRIORITY_NORMAL + 1); /* let a batch gather */
        return r < 0 ? r : sd_event_source_set_enabled(d->binding, SD_EVENT_OFF);
}

void binding_stop(struct store_dir *d)
{
        while (d->binds != NULL) {
                struct bind_request *q = d->binds;

                d->binds = q->next;
                answer(d, q, -ECANCELED, "the store is closing");
                request_free(q);
        }
}
