/* List, then watch from where the list ended; resume after a break, list again when history is gone (410). */
#include "store/kubernetes/reflector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/json/json_feed.h"
#include "base/json/json_field.h"
#include "base/json/json_prune.h"
#include "base/json/json_read.h"
#include "io/jitter.h"
#include "io/loop.h"
#include "store/kubernetes/reflector_known.h"

#define PAGE_ITEMS        500
#define LINE_MAX_BYTES    ((size_t) 16 << 20) /* of an event, and of an item of a list */
#define LIST_TIMEOUT_USEC (60 * UINT64_C(1000000))
#define WATCH_SEC_MIN                                                                                        \
        300 /* a watch ends after 300 to 600 s, so that watches do not all begin anew together */
#define WATCH_SLACK_SEC    30 /* the server should have ended it by then: it is dead */
#define BACKOFF_FIRST_USEC UINT64_C(250000)
#define BACKOFF_MAX_USEC   (4 * UINT64_C(1000000))  /* in step 5 s after the server is back */
#define MISSING_USEC       (4 * UINT64_C(1000000))  /* between two looks for a kind that is not installed */
#define OPTIONAL_USEC      (60 * UINT64_C(1000000)) /* ... that need not be there */
#define STEADY_USEC        (2 * UINT64_C(1000000))  /* a watch that lasted this long was no failure */
#define PAGE_MAX_BYTES     ((size_t) 32 << 20)      /* a larger page is asked for in smaller ones */
#define SILENCE_USEC       (150 * UINT64_C(1000000))

static uint64_t now_usec(const struct reflector *r)
{
        return loop_now_usec(r->store->loop);
}

static void list(struct reflector *r);
static void watch(struct reflector *r);

static void go_on(struct reflector *r)
{
        loop_rest(r->timer);
        if (r->version[0] == '\0')
                list(r);
        else
                watch(r);
}

static void wait_usec(struct reflector *r, uint64_t usec)
{
        r->state = REFLECTOR_WAITING;
        loop_rearm(r->timer, usec);
}

static void back_off(struct reflector *r)
{
        uint64_t usec = backoff_usec(++r->failures, BACKOFF_FIRST_USEC, BACKOFF_MAX_USEC);

        wait_usec(r, usec / 2 + jitter_below(usec / 2 + 1));
}

/* What nobody reads does not become a tree. @under: as of json_prune() */
static json_t *read_object(const struct reflector *r, const char *bytes, size_t size_bytes, const char *under,
                           struct err *err)
{
        const char *const *unread = store_kind_info(r->kind)->unread;
        CLEANUP(free_p) char *pruned = unread != NULL ? malloc(size_bytes + 1) : NULL;
        size_t left = pruned != NULL ? json_prune(bytes, size_bytes, unread, under, pruned) : 0;

        return left > 0 ? json_read(pruned, left, 0, err) : json_read(bytes, size_bytes, 0, err);
}

/* One item stops nothing: who cannot be told by a name keeps the account that there is of him. */
static int take_item(void *userdata, const char *bytes, size_t size_bytes)
{
        struct reflector *r = userdata;
        struct err err = { 0 };
        json_t *object = read_object(r, bytes, size_bytes, NULL, &err);

        r->page_taken++;
        if (object != NULL)
                (void) reflector_known_take(r, object, &err);
        json_decref(object);
        if (err.code == -EBADMSG && r->unreadable++ == 0)
                store_trouble(r->store, r->kind,
                              "an item of the list of %s cannot be read (%s): nothing is taken for gone by "
                              "this list",
                              store_kind_name(r->kind), err.msg);
        return err.code == -EBADMSG ? 0 : err.code;
}

int reflector_take_page(struct reflector *r, const char *bytes, size_t size_bytes, struct err *err)
{
        int e = json_feed_take(&r->page, bytes, size_bytes, take_item, r, err);

        r->page_bytes += size_bytes;
        if (e == 0 && r->page_bytes > PAGE_MAX_BYTES) /* it would not come in time */
                return err_set(err, -E2BIG, "a page of more than %zu bytes", PAGE_MAX_BYTES);
        return e == -ENOMEM ? err_set(err, e, "out of memory") : e;
}

int reflector_end_page(struct reflector *r, struct err *err)
{
        struct json_items items;
        int e = json_feed_end(&r->page, &items, err);

        if (e < 0)
                return e == -ENODATA ? err_set(err, -EBADMSG, "an empty reply") : e;
        if (!items.is_list || items.continue_cut)
                return err_set(err, -EBADMSG, items.is_list ? "the continue token is too long" : "no list");
        (void) text_copy(r->continue_, sizeof(r->continue_), items.continue_);
        (void) text_copy(r->version, sizeof(r->version),
                         items.continue_[0] == '\0' ? items.resource_version : "");
        return 0;
}

/* The kind is, when the lists of all its namespaces are whole. */
static void say_synced(struct reflector *r)
{
        r->synced = true;
        r->due = false;
        for (size_t i = 0; i < r->of_kind_count; i++)
                if (r->of_kind[i].due)
                        return;
        if (r->store->options.synced != NULL)
                r->store->options.synced(r->store->options.userdata, r->kind);
}

static void list_is_whole(struct reflector *r)
{
        json_feed_free(&r->page);
        reflector_known_drop_unlisted(r);
        r->missing = false; /* not before: what a first page does not have is not gone */
        r->denied[0] = '\0';
        r->rechecking = false;
        r->in_step_usec = now_usec(r);
        r->failures = 0;
        r->page_items = r->page_items < PAGE_ITEMS / 2 ? 2 * r->page_items : 0;
        if (r->version[0] == '\0') { /* a server that names no version cannot be watched from it */
                store_trouble(r->store, r->kind, "the list of %s has no resourceVersion",
                              store_kind_name(r->kind));
                back_off(r);
                return;
        }
        say_synced(r);
        watch(r);
}

/* A kind that the server does not know (yet), or does not show: there are none of it. It is asked again from
 * time to time. */
static void kind_is_missing(struct reflector *r, const char *refusal)
{
        bool optional = store_kind_info(r->kind)->optional;
        uint64_t usec = optional && refusal == NULL ? OPTIONAL_USEC : MISSING_USEC;

        if (!r->missing && refusal != NULL)
                store_trouble(r->store, r->kind, "list %s: %s: taken for none", store_kind_name(r->kind),
                              refusal);
        else if (!r->missing && !optional)
                store_trouble(r->store, r->kind, "the API server knows no %s: is its definition installed?",
                              store_kind_name(r->kind));
        r->missing = true;
        r->in_step_usec = now_usec(r);
        if (!r->synced || r->rechecking)
                say_synced(r);
        r->rechecking = false;
        wait_usec(r, usec / 2 + jitter_below(usec / 2));
}

/* One of the namespaces that we are held to is not there, or is not shown: the others go on meanwhile, and of
 * this one stands what was read. */
static void namespace_is_denied(struct reflector *r, const char *refusal)
{
        if (strcmp(r->denied, refusal) != 0)
                store_trouble(
                        r->store, r->kind,
                        "namespace '%s' is not read: it is not there, or nobody gave us our rights in it "
                        "(list %s: %s)",
                        r->namespace_, store_kind_name(r->kind), refusal);
        (void) text_copy(r->denied, sizeof(r->denied), refusal);
        if (r->due)
                say_synced(r);
        r->rechecking = false;
        wait_usec(r, MISSING_USEC / 2 + jitter_below(MISSING_USEC / 2));
}

static bool on_list_bytes(void *userdata, const char *bytes, size_t size_bytes)
{
        struct reflector *r = userdata;

        return reflector_take_page(r, bytes, size_bytes, &r->page_problem) == 0;
}

static void on_list(void *userdata, const struct http_call_result *result)
{
        struct reflector *r = userdata;
        char sentence[300];
        int e = kube_result(result, sentence, sizeof(sentence));

        r->call = NULL;
        if (result->error == -ECANCELED && r->page_problem.code == 0)
                return;
        if (r->known.count == 0 && /* what is known of goes one by one, and nobody's 404 takes it */
            (e == -ENOENT || (e == -EPERM && store_kind_info(r->kind)->optional))) {
                kind_is_missing(r, e == -EPERM ? sentence : NULL);
                return;
        }
        if (e == -EPERM && r->namespace_ != NULL) {
                r->continue_[0] = r->version[0] = '\0';
                namespace_is_denied(r, sentence);
                return;
        }
        if (e == 0)
                e = reflector_end_page(r, &r->page_problem);
        if (r->page_problem.code != 0) {
                e = r->page_problem.code;
                (void) text_copy(sentence, sizeof(sentence), r->page_problem.msg);
        }
        if (e == -E2BIG && r->page_items > 1) { /* as many as have come, as they fit */
                r->page_items = r->page_taken > 0 && r->page_taken < r->page_items ? r->page_taken
                                                                                   : r->page_items / 8 + 1;
                list(r);
        } else if (e < 0) {
                store_trouble(r->store, r->kind, "list %s: %s", store_kind_name(r->kind), sentence);
                r->continue_[0] = r->version[0] =
                        '\0'; /* also when a page's token expired (410): from the start */
                back_off(r);
        } else if (r->continue_[0] != '\0')
                list(r);
        else
                list_is_whole(r);
}

static void append_selector(const struct reflector *r, struct text *path)
{
        if ((r->kind == STORE_POD || r->kind == STORE_RESOURCE_SLICE) && r->node != NULL)
                text_printf(path, "&fieldSelector=spec.nodeName%%3D%s", r->node);
}

static void begin(struct reflector *r, struct text *path, struct kube_request request)
{
        int e = -ENOMEM;

        request.method = "GET";
        request.path = path->data;
        request.userdata = r;
        if (!path->failed)
                e = kube_call_start(r->client, &request, &r->call);
        text_free(path);
        if (e < 0)
                back_off(r);
}

static void list(struct reflector *r)
{
        struct text path = { 0 };

        r->state = REFLECTOR_LISTING;
        r->page_problem = (struct err){ 0 };
        r->page_bytes = r->page_taken = 0;
        json_feed_begin(&r->page, LINE_MAX_BYTES);
        if (r->continue_[0] == '\0') {
                r->list++;
                r->unreadable = 0;
        }
        if (r->page_items == 0)
                r->page_items = PAGE_ITEMS;
        store_collection(r->kind, r->namespace_, &path);
        text_printf(&path, "?limit=%u", r->page_items);
        append_selector(r, &path);
        if (r->continue_[0] != '\0') {
                text_append(&path, "&continue=");
                text_append_escaped(&path, r->continue_, "");
        }
        begin(r, &path,
              (struct kube_request){
                      .timeout_usec = LIST_TIMEOUT_USEC, .chunk = on_list_bytes, .done = on_list });
}

static int take_error(const json_t *status, struct err *err)
{
        struct json_field root = json_field_root(status);
        const char *message = "", *reason = "";
        int64_t code = 0;

        (void) json_field_string(&root, "message", &message, NULL);
        (void) json_field_string(&root, "reason", &reason, NULL);
        (void) json_field_int64(&root, "code", INT64_MIN, INT64_MAX, &code, NULL);
        return err_set(err,
                       code == 410 || strcmp(reason, "Expired") == 0 || strcmp(reason, "Gone") == 0
                               ? -ESTALE
                               : -EBADMSG,
                       "%s", message[0] != '\0' ? message : "the watch ended with an error");
}

static int take_event(struct reflector *r, const char *type, const json_t *object, struct err *err)
{
        struct metadata metadata = metadata_of(object);
        struct reflector_object *known;
        char key[600];
        int e = 0;

        if (strcmp(type, "ERROR") == 0)
                return take_error(object, err);
        r->bookmarked = r->bookmarked || strcmp(type, "BOOKMARK") == 0;
        if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
                e = reflector_known_take(r, object, err);
        else if (strcmp(type, "DELETED") == 0 && reflector_known_key(r, &metadata, key)) {
                known = (struct reflector_object *) name_map_find(&r->known, key);
                if (known != NULL)
                        reflector_known_forget(r, known);
        }
        if (e == 0 && metadata.version[0] != '\0' && strlen(metadata.version) < sizeof(r->version))
                (void) text_copy(r->version, sizeof(r->version),
                                 metadata.version); /* BOOKMARKs have no more */
        return e;
}

int reflector_take_line(struct reflector *r, const char *bytes, size_t size_bytes, struct err *err)
{
        json_t *line = read_object(r, bytes, size_bytes, "object", NULL);
        struct json_field root = json_field_root(line), object;
        const char *type = "";
        int e = line != NULL ? json_field_string(&root, "type", &type, err) : -EBADMSG;

        if (e != 0 || json_field_object(&root, "object", &object, err) != 0)
                e = err_set(err, -EBADMSG, "a watch event that is none");
        else
                e = take_event(r, type, object.value, err);
        json_decref(line);
        return e;
}

/* A line that came in several pieces is collected; one that is whole in its piece is read in place. */
static bool on_watch_bytes(void *userdata, const char *bytes, size_t size)
{
        struct reflector *r = userdata;
        struct err err = { 0 };

        r->in_step_usec = now_usec(r);
        while (size > 0) {
                const char *end = memchr(bytes, '\n', size);
                size_t part = end != NULL ? (size_t) (end - bytes) : size;
                int e = 0;

                if (end == NULL || r->line.size_bytes > 0)
                        text_append_bytes(&r->line, bytes, part);
                if (r->line.failed)
                        e = err_set(&err, -E2BIG, "a watch event of more than %zu bytes", LINE_MAX_BYTES);
                else if (end != NULL && r->line.size_bytes > 0)
                        e = reflector_take_line(r, r->line.data, r->line.size_bytes, &err);
                else if (end != NULL && part > 0)
                        e = reflector_take_line(r, bytes, part, &err);
                if (end != NULL)
                        text_reset(&r->line);
                if (e < 0) {
                        r->expired = true; /* whatever it was, a fresh list is right */
                        if (e != -ESTALE)
                                store_trouble(r->store, r->kind, "watch %s: %s", store_kind_name(r->kind),
                                              err.msg);
                        return false;
                }
                if (end == NULL)
                        return true;
                bytes = end + 1;
                size -= part + 1;
        }
        return true;
}

static uint64_t silence_usec(const struct reflector *r)
{
        return r->store->options.silence_usec > 0 ? r->store->options.silence_usec : SILENCE_USEC;
}

/* A server that has sent bookmarks goes on to send them: when two are missed nobody is there any more. The
 * watch is begun anew from where it was; until that is answered the age counts from the last byte. */
static void look_for_silence(struct reflector *r)
{
        uint64_t heard = r->in_step_usec > r->watch_began_usec ? r->in_step_usec : r->watch_began_usec;
        uint64_t silent = now_usec(r) - heard, limit = silence_usec(r);

        if (!r->bookmarked || silent < limit) {
                loop_rearm(r->timer, r->bookmarked ? limit - silent : limit);
                return;
        }
        store_trouble(r->store, r->kind, "watch %s: silent for %u s; it is begun anew",
                      store_kind_name(r->kind), (unsigned) (silent / 1000000));
        kube_call_cancel(r->call);
        r->call = NULL;
        text_free(&r->line);
        r->line.max_bytes = LINE_MAX_BYTES;
        r->watch_open = false;
        back_off(r);
}

static void on_watch_began(void *userdata, unsigned status)
{
        struct reflector *r = userdata;

        r->watch_open = status == 200;
}

static void on_watch_end(void *userdata, const struct http_call_result *result)
{
        struct reflector *r = userdata;
        uint64_t lasted_usec = now_usec(r) - r->watch_began_usec;
        char sentence[300];
        int e = kube_result(result, sentence, sizeof(sentence));
        bool opened = result->status == 200;

        r->call = NULL;
        loop_rest(r->timer);
        r->watch_open = false;
        text_free(&r->line);
        r->line.max_bytes = LINE_MAX_BYTES;
        if (result->error == -ECANCELED && !r->expired)
                return;
        if (opened && result->error != -ETIMEDOUT) /* who ends it was there until now */
                r->in_step_usec = now_usec(r);
        if (opened && lasted_usec >= STEADY_USEC)
                r->failures = 0;
        if (r->expired || result->status == 410 || result->status == 400 || result->status == 404 ||
            result->status == 504 || /* 504: the server is behind the version that it is asked for */
            (e == -EPERM && r->namespace_ != NULL)) { /* a list tells */
                r->version[0] = '\0';
                r->expired = false;
        } else if (e < 0 && r->failures > 0) /* one break is an API server's everyday life */
                store_trouble(r->store, r->kind, "watch %s: %s", store_kind_name(r->kind), sentence);
        if (opened && lasted_usec >= STEADY_USEC)
                go_on(r);
        else
                back_off(r);
}

static void watch(struct reflector *r)
{
        unsigned seconds = WATCH_SEC_MIN + (unsigned) jitter_below(WATCH_SEC_MIN);
        struct text path = { 0 };

        r->state = REFLECTOR_WATCHING;
        r->watch_began_usec = now_usec(r);
        store_collection(r->kind, r->namespace_, &path);
        text_printf(&path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
        text_append_escaped(&path, r->version, "");
        append_selector(r, &path);
        begin(r, &path,
              (struct kube_request){ .timeout_usec = (seconds + WATCH_SLACK_SEC) * UINT64_C(1000000),
                                     .began = on_watch_began,
                                     .chunk = on_watch_bytes,
                                     .done = on_watch_end });
        if (r->state == REFLECTOR_WATCHING)
                loop_rearm(r->timer, silence_usec(r));
}

static void on_timer(void *userdata)
{
        struct reflector *r = userdata;

        if (r->state == REFLECTOR_WATCHING)
                look_for_silence(r);
        else
                go_on(r);
}

static void on_refresh(void *userdata)
{
        struct reflector *r = userdata;
        uint64_t version = 0;

        kube_call_cancel(r->call);
        r->call = NULL;
        loop_rest(r->timer);
        text_free(&r->line);
        r->line.max_bytes = LINE_MAX_BYTES;
        r->watch_open = r->expired = false;
        if (r->synced && !r->rechecking && text_parse_uint64(r->version, &version) == 0)
                r->recheck_version = version;
        r->rechecking = r->synced;
        r->version[0] = r->continue_[0] = '\0';
        list(r);
}

/* Not at once: it may be asked for from within the very call that is to be cancelled. */
void reflector_refresh(struct reflector *r)
{
        r->due = true;
        loop_rearm(r->refreshing, 0);
}

int reflector_start(struct reflector *r)
{
        int e = loop_timer(r->store->loop, on_timer, r, &r->timer);

        if (e == 0)
                e = loop_timer(r->store->loop, on_refresh, r, &r->refreshing);
        if (e < 0)
                return e;
        r->line.max_bytes = LINE_MAX_BYTES;
        wait_usec(r, 0);
        return 0;
}

void reflector_stop(struct reflector *r)
{
        r->refreshing = sd_event_source_disable_unref(r->refreshing);
        kube_call_cancel(r->call);
        r->call = NULL;
        r->timer = sd_event_source_disable_unref(r->timer);
        for (struct name_map_entry *e = name_map_first(&r->known), *next; e != NULL; e = next) {
                next = name_map_next(&r->known, e);
                free(e);
        }
        name_map_free(&r->known);
        text_free(&r->line);
        json_feed_free(&r->page);
}

uint64_t reflector_age_usec(const struct reflector *r, uint64_t now)
{
        uint64_t since = r->synced ? r->in_step_usec : r->opened_usec;

        if (r->synced && (r->watch_open || r->missing || r->denied[0] != '\0'))
                return 0;
        return now > since ? now - since : 0;
}
