/* Observations into rows of the one SpeedTable object, by store_change(). */
#include "store/speed_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "store/store_once.h"

struct refinement {
        store_answer answer;
        void *userdata;
        uint64_t now_usec;
        struct speed_table_observation *observations;
        size_t count;
};

static void refinement_free(struct refinement *r)
{
        for (size_t i = 0; i < r->count; i++) {
                free((char *) r->observations[i].program);
                free((char *) r->observations[i].model);
                free((char *) r->observations[i].device);
        }
        free(r->observations);
        free(r);
}

static struct refinement *refinement_new(const struct speed_table_observation *observations, size_t count)
{
        struct refinement *r = calloc(1, sizeof(*r));

        if (r == NULL)
                return NULL;
        r->observations = calloc(count + 1, sizeof(*r->observations));
        for (; r->observations != NULL && r->count < count; r->count++) {
                const struct speed_table_observation *o = &observations[r->count];

                r->observations[r->count] = *o;
                r->observations[r->count].program = strdup(o->program == NULL ? "" : o->program);
                r->observations[r->count].model = strdup(o->model);
                r->observations[r->count].device = strdup(o->device);
                if (r->observations[r->count].program == NULL || r->observations[r->count].model == NULL ||
                    r->observations[r->count].device == NULL) {
                        r->count++;
                        break;
                }
        }
        if (r->observations != NULL && r->count == count)
                return r;
        refinement_free(r);
        return NULL;
}

static json_t *refine(void *userdata, const json_t *object, struct err *err)
{
        const struct refinement *r = userdata;

        return speed_table_refine(object, r->observations, r->count, r->now_usec, err);
}

static void refined(void *userdata, int result, const char *sentence)
{
        struct refinement *r = userdata;

        if (r->answer != NULL)
                r->answer(r->userdata, result, sentence);
        refinement_free(r);
}

void speed_store_refine(struct store *store, const struct speed_table_observation *observations, size_t count,
                        store_answer answer, void *userdata)
{
        struct refinement *r = refinement_new(observations, count);

        if (r == NULL) {
                if (answer != NULL)
                        answer(userdata, -ENOMEM, "no memory for the speed table");
                return;
        }
        r->now_usec = clock_realtime_usec() / 1000000 * 1000000;
        r->answer = answer;
        r->userdata = userdata;
        store_change(store, STORE_SPEED_TABLE, NULL, SPEED_TABLE_NAME, refine, refined, r);
}

struct waiting {
        struct store_once once;
        json_t *speeds;    /* of all tables */
        char trouble[256]; /* the first; "" = none */
};

static void note_trouble(struct waiting *w, const char *what, const char *sentence)
{
        if (w->trouble[0] == '\0')
                (void) text_format(w->trouble, sizeof(w->trouble), "%.60s%s%.180s", what,
                                   what[0] == '\0' ? "" : ": ", sentence);
}

static void changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct waiting *w = userdata;
        struct speed_table table;
        struct err err = { 0 };
        json_t *speeds = speed_table_speeds(object);

        (void) kind;
        if (speed_table_decode(object, &table, &err) < 0)
                note_trouble(w, key, err.msg);
        else if (table.trouble[0] != '\0')
                note_trouble(w, key, table.trouble);
        speed_table_free(&table);
        if (json_is_object(speeds))
                (void) json_object_update(w->speeds, speeds);
}

/* A file that holds nothing readable is no object of any kind. */
static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct waiting *w = userdata;

        if (kind == STORE_SPEED_TABLE && text_starts_with(sentence, "list ")) /* synced() may still come */
                (void) text_format(w->once.failure, sizeof(w->once.failure), "%.190s", sentence);
        else if (kind == STORE_SPEED_TABLE || strstr(sentence, SPEED_TABLE_NAME ".speedtable.") != NULL)
                note_trouble(w, "", sentence);
}

static void synced(void *userdata, enum store_kind kind)
{
        struct waiting *w = userdata;

        (void) kind;
        store_once_answered(&w->once, 0, "");
}

int speed_store_read_now(const char *spec, const char *kubeconfig, struct speed_table *ret, struct err *err)
{
        struct waiting w = { .speeds = json_object() };
        struct store_options options = { .spec = spec,
                                         .kubeconfig = kubeconfig,
                                         .kinds = 1u << STORE_SPEED_TABLE,
                                         .changed = changed,
                                         .synced = synced,
                                         .trouble = on_trouble,
                                         .userdata = &w };
        json_t *table = NULL;
        int r = store_once_open(&w.once, &options, err);

        *ret = (struct speed_table){ 0 };
        if (r == 0)
                r = store_once_wait(&w.once, err);
        if (r == 0) {
                table = json_pack("{s:O}", "speeds", w.speeds);
                r = speed_table_decode(table, ret, err);
                /* else its own: several tables, each of few rows, may have too many */
                if (w.trouble[0] != '\0')
                        (void) text_copy(ret->trouble, sizeof(ret->trouble), w.trouble);
        }
        json_decref(table);
        json_decref(w.speeds);
        return r;
}

int speed_store_refine_now(const char *spec, const char *kubeconfig,
                           const struct speed_table_observation *observations, size_t count, struct err *err)
{
        struct store_options options = { .spec = spec, .kubeconfig = kubeconfig };
        struct store_once once;
        int r = store_once_open(&once, &options, err);

        if (r < 0)
                return r;
        speed_store_refine(once.store, observations, count, store_once_answered, &once);
        return store_once_wait(&once, err);
}
