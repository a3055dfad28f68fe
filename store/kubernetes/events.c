/* Events: each is said once in a while about an object, and nobody waits for the answer. */
#include "store/kubernetes/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/timestamp.h"
#include "io/loop.h"

#define EVENT_QUIET_USEC (300 * UINT64_C(1000000)) /* one event per object and reason in five minutes */
#define EVENT_LOST_USEC  UINT64_C(1000000)         /* ... unless it was lost: then after this */
#define EVENT_LOOK_USEC  (60 * UINT64_C(1000000))  /* so often those whose silence is over are forgotten */
#define EVENTS_KEPT      4096

struct said {
        struct name_map_entry entry;
        uint64_t quiet_until_usec;
        char key[];
};

void events_forget(struct events *events)
{
        for (struct name_map_entry *e = name_map_first(&events->said), *next; e != NULL; e = next) {
                next = name_map_next(&events->said, e);
                free(e);
        }
        name_map_free(&events->said);
}

/* One that is under way. */
struct sent {
        struct events *events; /* borrowed */
        struct text key;       /* which it is */
};

static void free_sent(struct sent *sent)
{
        text_free(&sent->key);
        free(sent);
}

/* What may be said again need not be remembered: objects come and go, each with names of its own. */
static void forget_old(struct events *events, uint64_t now)
{
        if (now < events->look_usec)
                return;
        events->look_usec = now + EVENT_LOOK_USEC;
        for (struct name_map_entry *e = name_map_first(&events->said), *next; e != NULL; e = next) {
                next = name_map_next(&events->said, e);
                if (((struct said *) e)->quiet_until_usec <= now) {
                        name_map_remove(&events->said, e);
                        free(e);
                }
        }
}

/* Was this said about this object within the last minutes? If not, it is now. */
static bool was_said(struct events *events, const struct text *key)
{
        uint64_t now = loop_now_usec(events->operations->store->loop);
        struct said *said = (struct said *) name_map_find(&events->said, key->data);

        if (said != NULL && now < said->quiet_until_usec)
                return true;
        if (said == NULL) {
                forget_old(events, now);
                if (events->said.count >= EVENTS_KEPT)
                        events_forget(events);
                said = calloc(1, sizeof(*said) + key->size_bytes + 1);
                if (said == NULL)
                        return false;
                memcpy(said->key, key->data, key->size_bytes + 1);
                said->entry.key = said->key;
                if (name_map_insert(&events->said, &said->entry) < 0) {
                        free(said);
                        return false;
                }
        }
        said->quiet_until_usec = now + EVENT_QUIET_USEC;
        return false;
}

/* An API server that was away has not heard it: who says it again is not to be kept quiet for minutes. */
static void lose(const struct sent *sent)
{
        struct said *said = (struct said *) name_map_find(&sent->events->said, sent->key.data);

        if (said != NULL)
                said->quiet_until_usec =
                        loop_now_usec(sent->events->operations->store->loop) + EVENT_LOST_USEC;
}

static void on_event(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));

        if (r < 0 && r != -ECANCELED)
                store_trouble(o->all->store, o->kind, "an event could not be written: %s", sentence);
        if (operation_may_be_repeated(result))
                lose(o->userdata);
        free_sent(o->userdata);
        operation_free(o);
}

static const char *micro_time(uint64_t usec, char text[TIMESTAMP_BYTES])
{
        (void) timestamp_format(usec % 1000000 != 0 ? usec : usec + 1, text); /* six digits are required */
        return text;
}

/* A text that was cut may end in a part of a character; the API takes whole ones only. */
static void cut_to_whole_character(char *text)
{
        size_t length = strlen(text);

        while (length > 0 && ((unsigned char) text[length - 1] & 0xc0) == 0x80)
                length--;
        if (length > 0 && ((unsigned char) text[length - 1] & 0x80) != 0)
                length--;
        text[length] = '\0';
}

/* Return: what is to be sent, NULL = it is to be kept quiet. */
static struct sent *new_sent(struct events *events, const struct store_event *event)
{
        struct sent *sent = calloc(1, sizeof(*sent));

        if (sent == NULL)
                return NULL;
        sent->events = events;
        text_printf(&sent->key, "%s/%s/%s/%s/%s/%s", event->object_kind,
                    event->namespace_ != NULL ? event->namespace_ : "", event->name,
                    event->uid != NULL ? event->uid : "", event->reason,
                    event->field != NULL ? event->field : "");
        if (!sent->key.failed && !was_said(events, &sent->key))
                return sent;
        free_sent(sent);
        return NULL;
}

void events_write(struct events *events, const struct store_event *event)
{
        struct sent *sent = new_sent(events, event);
        bool node = strcmp(event->object_kind, "Node") == 0;
        enum store_kind kind = STORE_POD;
        struct operation *o;
        char time[TIMESTAMP_BYTES], note[1024];
        const char *namespace_ =
                event->namespace_ != NULL && event->namespace_[0] != '\0' ? event->namespace_ : "default";
        struct text path = { 0 };
        int r = -ENOMEM;

        if (sent == NULL)
                return;
        (void) store_kind_parse(event->object_kind, &kind);
        o = operation_new(events->operations, STORE_POD, namespace_, NULL, NULL, NULL, sent);
        if (o == NULL) {
                free_sent(sent);
                return;
        }
        if (!text_copy(note, sizeof(note), event->message))
                cut_to_whole_character(note);
        o->body = json_pack("{s:s, s:s, s:{s:s+, s:s}, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s, "
                            "s:s*, s:s*, s:s*}}",
                            "apiVersion", "events.k8s.io/v1", "kind", "Event", "metadata", "generateName",
                            event->name, "-", "namespace", namespace_, "eventTime",
                            micro_time(loop_realtime_usec(events->operations->store->loop), time), "type",
                            event->type, "reason", event->reason, "action", event->reason, "note", note,
                            "reportingController", "remuda.dev/remuda", "reportingInstance", "remuda",
                            "regarding", "apiVersion", store_kind_info(kind)->api_version, "kind",
                            event->object_kind, "name", event->name, "namespace",
                            node ? NULL : event->namespace_, "uid", node ? event->name : event->uid,
                            "fieldPath", event->field);
        text_printf(&path, "/apis/events.k8s.io/v1/namespaces/%s/events", namespace_);
        if (o->body != NULL && !path.failed)
                r = kube_call_start(events->operations->client,
                                    &(struct kube_request){ .method = "POST",
                                                            .path = path.data,
                                                            .body = o->body,
                                                            .timeout_usec = OPERATION_CALL_USEC,
                                                            .done = on_event,
                                                            .userdata = o },
                                    NULL);
        text_free(&path);
        if (r < 0) {
                lose(sent);
                free_sent(sent);
                operation_free(o);
        }
}
