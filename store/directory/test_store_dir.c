/* A store in a directory beside its users: kubectl, editors, other extenders, and crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/store.h"

/* A store on a directory of its own, and everything it said. */
struct fixture {
        sd_event *loop;
        struct store *store;
        char path[64];
        json_t *objects;  /* "Pod default/a" -> the object as last delivered */
        json_t *troubles; /* sentences */
        unsigned deliveries, synced;
        int answers, result;
        char sentence[512];
};

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct fixture *f = userdata;
        char name[600];

        (void) text_format(name, sizeof(name), "%s %s", store_kind_name(kind), key);
        f->deliveries++;
        if (object == NULL)
                assert_int_equal(json_object_del(f->objects, name), 0); /* only what was there can go */
        else
                (void) json_object_set_new(f->objects, name, json_deep_copy(object));
}

static void on_synced(void *userdata, enum store_kind kind)
{
        struct fixture *f = userdata;

        f->synced |= 1u << kind;
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct fixture *f = userdata;

        (void) kind;
        (void) json_array_append_new(f->troubles, json_string(sentence));
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct fixture *f = userdata;

        f->answers++;
        f->result = result;
        (void) text_copy(f->sentence, sizeof(f->sentence), sentence);
}

static void run_for(struct fixture *f, uint64_t usec)
{
        uint64_t now = clock_monotonic_usec(), end = now + usec;

        for (; now < end; now = clock_monotonic_usec())
                (void) sd_event_run(f->loop, end - now);
}

static void settle(struct fixture *f)
{
        run_for(f, 100000); /* longer than a busy machine takes to notice a file */
}

static void open_store(struct fixture *f)
{
        char spec[80];
        struct err err = { 0 };
        struct store_options options = { .spec = spec,
                                         .kinds = (1u << STORE_KIND_COUNT) - 1,
                                         .changed = on_changed,
                                         .synced = on_synced,
                                         .trouble = on_trouble,
                                         .userdata = f };

        (void) text_format(spec, sizeof(spec), "dir:%s", f->path);
        if (store_open(f->loop, &options, &f->store, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(f->deliveries, 0); /* never from within the call */
        settle(f);
}

static struct fixture *fixture_new(void)
{
        struct fixture *f = calloc(1, sizeof(*f));

        (void) text_copy(f->path, sizeof(f->path), "/tmp/remuda-store-XXXXXX");
        assert_non_null(mkdtemp(f->path));
        assert_int_equal(loop_new(&f->loop, NULL), 0);
        f->objects = json_object();
        f->troubles = json_array();
        return f;
}

static void close_store(struct fixture *f)
{
        store_close(f->store);
        f->store = NULL;
        (void) json_object_clear(f->objects);
        f->deliveries = f->synced = 0;
}

static void fixture_free(struct fixture *f)
{
        char command[100];

        store_close(f->store);
        sd_event_unref(f->loop);
        json_decref(f->objects);
        json_decref(f->troubles);
        (void) text_format(command, sizeof(command), "rm -rf %s", f->path);
        assert_int_equal(system(command), 0);
        free(f);
}

static void write_bytes(struct fixture *f, const char *name, const char *bytes, const char *mode)
{
        char path[200];
        FILE *file;

        (void) text_format(path, sizeof(path), "%s/%s", f->path, name);
        file = fopen(path, mode);
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, strlen(bytes), file), strlen(bytes));
        assert_int_equal(fclose(file), 0);
}

static void write_file(struct fixture *f, const char *name, const char *bytes)
{
        write_bytes(f, name, bytes, "w");
}

static void remove_file(struct fixture *f, const char *name)
{
        char path[200];

        (void) text_format(path, sizeof(path), "%s/%s", f->path, name);
        assert_int_equal(unlink(path), 0);
}

static char *read_file(struct fixture *f, const char *name)
{
        char path[200];
        char *bytes = calloc(1, 65536);
        FILE *file;

        (void) text_format(path, sizeof(path), "%s/%s", f->path, name);
        file = fopen(path, "r");
        if (file != NULL) {
                bytes[fread(bytes, 1, 65535, file)] = 0;
                (void) fclose(file);
        }
        return bytes;
}

/* "Pod default/a", "spec.nodeName" -> text, or "" */
static const char *field(struct fixture *f, const char *object, const char *path)
{
        const json_t *value = json_object_get(f->objects, object);
        char part[64];

        while (value != NULL && *path != '\0') {
                size_t length = strcspn(path, "/");

                (void) text_format(part, sizeof(part), "%.*s", (int) length, path);
                value = json_object_get(value, part);
                path += length + (path[length] == '/');
        }
        return json_is_string(value) ? json_string_value(value) : value != NULL ? "?" : "";
}

static bool has(struct fixture *f, const char *object)
{
        return json_object_get(f->objects, object) != NULL;
}

static bool said(struct fixture *f, const char *part)
{
        size_t index;
        json_t *sentence;

        json_array_foreach(f->troubles, index,
                           sentence) if (strstr(json_string_value(sentence), part) != NULL) return true;
        return false;
}

static int bind_pod(struct fixture *f, const char *name, const char *uid, const char *node)
{
        struct store_binding binding = { .namespace_ = "default", .name = name, .uid = uid, .node = node };
        int before = f->answers;

        store_bind(f->store, &binding, on_answer, f);
        assert_int_equal(f->answers, before);
        settle(f);
        assert_int_equal(f->answers, before + 1);
        return f->result;
}

#define POD_A                                                                                                \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\","    \
        "\"uid\":\"u-a\"},\"spec\":{}}"
#define POD_B                                                                                                \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\",\"uid\":\"u-b\"},\"spec\":{\"nodeName\":\"n9\"}}"

static void files_of_every_form_are_read(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "pods.json",
                   "{\"apiVersion\":\"v1\",\"items\":[" POD_A "," POD_B
                   "],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"\"}}");
        write_file(f, "nodes.json", "{\"kind\":\"NodeList\",\"items\":[{\"metadata\":{\"name\":\"n1\"}}]}");
        write_file(f, "n1.nodeaccelerators.json",
                   "{\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"n1\"},\"status\":{}}");
        write_file(f, "job.yaml",
                   "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: fashion}\nspec: "
                   "{epochs: 3}\n---\nkind: SpeedTable\nmetadata: {name: speeds}\n");
        write_file(f, "list.yaml",
                   "kind: List\nitems:\n- kind: PriorityClass\n  metadata: {name: high}\n- kind: ConfigMap\n "
                   " metadata: {name: other}\n");
        write_file(f, ".hidden.json", POD_A "x");
        write_file(f, "README.txt", "nothing");
        open_store(f);
        assert_string_equal(field(f, "Pod default/a", "metadata/uid"), "u-a");
        assert_string_equal(field(f, "Pod default/b", "spec/nodeName"), "n9");
        assert_string_equal(field(f, "Pod default/b", "metadata/namespace"), "default"); /* filled in */
        assert_true(has(f, "Node n1"));
        assert_true(has(f, "NodeAccelerators n1"));
        assert_true(has(f, "TrainingJob default/fashion"));
        assert_true(has(f, "SpeedTable speeds"));
        assert_true(has(f, "PriorityClass high"));
        assert_int_equal(json_object_size(f->objects), 7);
        assert_int_equal(json_array_size(f->troubles), 0);
        assert_true(f->synced == (1u << STORE_KIND_COUNT) - 1);
        assert_true(store_age_usec(f->store, loop_now_usec(f->loop)) == 0);
        assert_true(store_inventory_mtime_usec(f->store, "n1") > 0);
        assert_true(store_inventory_mtime_usec(f->store, "n2") == 0);
        fixture_free(f);
}

static void changes_are_seen_and_nothing_else_is_delivered(void **state)
{
        struct fixture *f = fixture_new();
        char old[200], new[200];

        (void) state;
        write_file(f, "pods.json", "{\"kind\":\"List\",\"items\":[" POD_A "," POD_B "]}");
        open_store(f);
        assert_int_equal(f->deliveries, 2);
        write_file(f, "pods.json",
                   "{\"kind\":\"List\",\"items\":[" POD_B "," POD_A "]}"); /* another order, nothing new */
        settle(f);
        assert_int_equal(f->deliveries, 2);
        write_file(f, "pods.json",
                   "{\"kind\":\"List\",\"items\":[" POD_B
                   ",{\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\"}}]}");
        settle(f);
        assert_int_equal(f->deliveries, 4); /* c came, a went */
        assert_false(has(f, "Pod default/a"));
        assert_true(has(f, "Pod default/c"));
        (void) text_format(old, sizeof(old), "%s/pods.json", f->path);
        (void) text_format(new, sizeof(new), "%s/renamed.json", f->path);
        assert_int_equal(rename(old, new), 0); /* moved, not vanished in between */
        settle(f);
        assert_int_equal(json_object_size(f->objects), 2);
        for (unsigned before = f->deliveries; f->deliveries > before;)
                fail();
        remove_file(f, "renamed.json");
        settle(f);
        assert_int_equal(json_object_size(f->objects), 0);
        fixture_free(f);
}

static void half_written_files_change_nothing(void **state)
{
        static const char *const broken[] = {
                "",
                "{",
                "{\"kind\":\"List\",\"items\":[",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"",
                "nonsense",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}} trailing",
                "{\"kind\":\"Pod\"}",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":nul}",
                "[]",
                "{}",
                "{\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\",\"metadata\":{\"name\":7}}]}",
        };
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "a.json", POD_A);
        write_file(f, "b.yaml", "kind: Pod\nmetadata: {name: y}\n");
        open_store(f);
        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                (void) json_array_clear(f->troubles);
                write_file(f, "a.json", broken[i]);
                settle(f);
                if (!has(f, "Pod default/a") || !said(f, "a.json"))
                        fail_msg("after '%s': %s", broken[i],
                                 has(f, "Pod default/a") ? "nothing was said" : "lost");
        }
        write_file(f, "b.yaml", "kind: Pod\nmetadata: {name: 'y\n");
        settle(f);
        assert_true(has(f, "Pod default/y"));
        assert_true(said(f, "b.yaml"));
        write_file(f, "a.json", POD_B);
        settle(f);
        assert_false(has(f, "Pod default/a")); /* whole again: now it counts */
        assert_true(has(f, "Pod default/b"));
        fixture_free(f);
}

static void of_two_files_the_later_counts(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "old.json", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"old\"}}");
        run_for(f, 20000);
        write_file(f, "new.json", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"new\"}}");
        open_store(f);
        assert_string_equal(field(f, "Node n", "metadata/uid"), "new");
        assert_true(said(f, "the later modified one, 'new.json', counts"));
        write_file(f, "old.json",
                   "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"older no more\"}}");
        settle(f);
        assert_string_equal(field(f, "Node n", "metadata/uid"), "older no more");
        remove_file(f, "old.json");
        settle(f);
        assert_string_equal(field(f, "Node n", "metadata/uid"), "new");
        write_file(f, "third.json", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"third\"}}");
        settle(f);
        assert_string_equal(field(f, "Node n", "metadata/uid"), "third");
        remove_file(f, "new.json"); /* the one that does not count */
        settle(f);
        assert_string_equal(field(f, "Node n", "metadata/uid"), "third");
        remove_file(f, "third.json");
        settle(f);
        assert_false(has(f, "Node n"));
        fixture_free(f);
}

static void a_bind_is_journalled_and_delivered(void **state)
{
        struct fixture *f = fixture_new();
        CLEANUP(free_p) char *journal = NULL;
        CLEANUP(free_p) char *pods = NULL;
        json_t *line;

        (void) state;
        write_file(f, "pods.json", "{\"kind\":\"List\",\"items\":[" POD_A "," POD_B "]}");
        open_store(f);
        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), 0);
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"), "n1");
        journal = read_file(f, "bindings.jsonl");
        line = json_loads(journal, 0, NULL);
        assert_non_null(line); /* exactly one line */
        assert_string_equal(json_string_value(json_object_get(line, "uid")), "u-a");
        assert_string_equal(json_string_value(json_object_get(line, "namespace")), "default");
        assert_string_equal(json_string_value(json_object_get(line, "name")), "a");
        assert_string_equal(json_string_value(json_object_get(line, "node")), "n1");
        assert_int_equal(strlen(json_string_value(json_object_get(line, "time"))) >= 20, 1);
        assert_int_equal(json_object_size(line), 5);
        json_decref(line);

        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), 0); /* again: a success, and no second line */
        assert_int_equal(bind_pod(f, "a", "u-a", "n2"), -EALREADY);
        assert_int_equal(bind_pod(f, "a", "u-other", "n1"), -ESTALE);
        assert_int_equal(bind_pod(f, "nobody", "u-x", "n1"), -ENOENT);
        assert_int_equal(bind_pod(f, "b", "u-b", "n9"), 0); /* bound by others, to the same node */
        assert_int_equal(bind_pod(f, "b", "u-b", "n1"), -EALREADY);
        assert_string_equal(f->sentence, "pod 'default/b' is bound to node 'n9'");
        assert_int_equal(bind_pod(f, "a", "u-a", ""), -EINVAL);
        free(TAKE(journal));
        journal = read_file(f, "bindings.jsonl");
        assert_ptr_equal(strchr(journal, '\n'), journal + strlen(journal) - 1);
        pods = read_file(f, "pods.json");
        assert_string_equal(pods,
                            "{\"kind\":\"List\",\"items\":[" POD_A "," POD_B "]}"); /* never rewritten */

        close_store(f);
        open_store(f); /* after a restart */
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"), "n1");
        assert_int_equal(bind_pod(f, "a", "u-a", "n2"), -EALREADY);
        write_file(f, "pods.json", "{\"kind\":\"List\",\"items\":[" POD_B "]}");
        settle(f);
        assert_false(has(f, "Pod default/a")); /* its object left: it holds nothing */
        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), -ENOENT);
        write_file(f, "pods.json", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a2\"}}");
        settle(f);
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"),
                            ""); /* another pod of its name is not bound */
        fixture_free(f);
}

static void a_bind_carries_annotations(void **state)
{
        struct fixture *f = fixture_new();
        json_t *annotations = json_pack("{s:s}", "remuda.dev/weight", "0.25");
        struct store_binding binding = {
                .namespace_ = "default", .name = "a", .uid = "u-a", .node = "n1", .annotations = annotations
        };

        (void) state;
        write_file(f, "a.json",
                   "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\",\"annotations\":{\"x\":"
                   "\"y\"}}}");
        open_store(f);
        store_bind(f->store, &binding, on_answer, f);
        json_decref(annotations);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(field(f, "Pod default/a", "metadata/annotations/remuda.dev"), "");
        {
                json_t *got = json_object_get(
                        json_object_get(json_object_get(f->objects, "Pod default/a"), "metadata"),
                        "annotations");

                assert_string_equal(json_string_value(json_object_get(got, "remuda.dev/weight")), "0.25");
                assert_string_equal(json_string_value(json_object_get(got, "x")), "y");
        }
        fixture_free(f);
}

static void a_yaml_pod_is_bound_too(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "pods.yaml",
                   "kind: Pod\nmetadata: {name: one}\n---\nkind: Pod\nmetadata: {name: two}\nspec: {x: 1}\n");
        open_store(f);
        assert_int_equal(bind_pod(f, "two", "", "n1"), 0); /* no uid anywhere: the name is the identity */
        assert_string_equal(field(f, "Pod default/two", "spec/nodeName"), "n1");
        assert_string_equal(field(f, "Pod default/one", "spec/nodeName"), "");
        close_store(f);
        open_store(f);
        assert_string_equal(field(f, "Pod default/two", "spec/nodeName"), "n1");
        assert_int_equal(bind_pod(f, "two", "", "n2"), -EALREADY);
        fixture_free(f);
}

static void a_torn_journal_line_binds_nothing(void **state)
{
        struct fixture *f = fixture_new();
        CLEANUP(free_p) char *journal = NULL;

        (void) state;
        write_file(f, "pods.json", "{\"kind\":\"List\",\"items\":[" POD_A "," POD_B "]}");
        write_file(f, "bindings.jsonl", "{\"uid\":\"u-a\",\"namespace\":\"default\",\"name\":\"a\",\"no");
        open_store(f);
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"), "");
        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), 0);
        close_store(f);
        open_store(f);
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"), "n1");
        journal = read_file(f, "bindings.jsonl");
        assert_non_null(strstr(journal, "\"no\n{\"uid\":\"u-a\""));
        assert_true(said(f, "cannot be read"));
        fixture_free(f);
}

static void lines_of_another_process_count(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "a.json", POD_A);
        open_store(f);
        write_bytes(f, "bindings.jsonl",
                    "{\"uid\":\"u-a\",\"namespace\":\"default\",\"name\":\"a\",\"node\":\"n7\"}\n", "a");
        settle(f);
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"), "n7");
        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), -EALREADY);
        remove_file(f, "bindings.jsonl"); /* an operator starts over */
        settle(f);
        assert_string_equal(field(f, "Pod default/a", "spec/nodeName"), "");
        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), 0);
        fixture_free(f);
}

static void many_binds_at_once_are_one_batch(void **state)
{
        struct fixture *f = fixture_new();
        struct text list = { 0 };

        (void) state;
        text_append(&list, "{\"kind\":\"List\",\"items\":[");
        for (int i = 0; i < 200; i++)
                text_printf(&list, "%s{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"uid\":\"u%d\"}}",
                            i > 0 ? "," : "", i, i);
        text_append(&list, "]}");
        write_file(f, "pods.json", list.data);
        open_store(f);
        for (int i = 0; i < 200; i++) {
                char name[16], uid[16];

                (void) text_format(name, sizeof(name), "p%d", i);
                (void) text_format(uid, sizeof(uid), "u%d", i);
                store_bind(f->store,
                           &(struct store_binding){ "default", name, uid, i % 2 ? "n1" : "n2", NULL },
                           on_answer, f);
        }
        run_for(f, 300000);
        assert_int_equal(f->answers, 200);
        assert_string_equal(field(f, "Pod default/p0", "spec/nodeName"), "n2");
        assert_string_equal(field(f, "Pod default/p199", "spec/nodeName"), "n1");
        text_free(&list);
        fixture_free(f);
}

static void an_evicted_pod_is_terminating(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "a.json", POD_A);
        open_store(f);
        store_evict(f->store, "default", "a", "u-a", 30, on_answer, f);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_true(field(f, "Pod default/a", "metadata/deletionTimestamp")[0] == '2');
        assert_int_equal(bind_pod(f, "a", "u-a", "n1"), -ESTALE);
        close_store(f);
        open_store(f);
        assert_true(field(f, "Pod default/a", "metadata/deletionTimestamp")[0] == '2');
        store_evict(f->store, "default", "a", "u-wrong", 0, on_answer, f);
        settle(f);
        assert_int_equal(f->result, -ESTALE);
        remove_file(f, "a.json");
        settle(f);
        assert_false(has(f, "Pod default/a"));
        fixture_free(f);
}

static void our_own_objects_are_put_by_rename(void **state)
{
        struct fixture *f = fixture_new();
        json_t *inventory = json_pack("{s:s, s:{s:s}, s:{s:i}}", "kind", "NodeAccelerators", "metadata",
                                      "name", "n1", "status", "generation", 1);
        uint64_t before;

        (void) state;
        open_store(f);
        store_put(f->store, STORE_INVENTORY, NULL, "n1", inventory, on_answer, f);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_true(has(f, "NodeAccelerators n1"));
        before = store_inventory_mtime_usec(f->store, "n1");
        run_for(f, 20000);
        assert_int_equal(store_touch(f->store, "n1"), 0);
        settle(f);
        assert_true(store_inventory_mtime_usec(f->store, "n1") > before);
        assert_int_equal(f->deliveries, 1); /* a touch is not a change */
        assert_int_equal(store_touch(f->store, "n2"), -ENOENT);
        store_put(f->store, STORE_INVENTORY, NULL, "../n1", inventory, on_answer, f);
        settle(f);
        assert_int_equal(f->result, -EINVAL);
        json_decref(inventory);
        fixture_free(f);
}

static void a_job_keeps_its_file_and_gets_a_status(void **state)
{
        struct fixture *f = fixture_new();
        json_t *job = json_pack("{s:s, s:{s:s}, s:{s:s}}", "kind", "TrainingJob", "metadata", "name",
                                "fashion", "status", "phase", "Running");
        CLEANUP(free_p) char *file = NULL;
        static const char yaml[] = "kind: TrainingJob # mine\nmetadata: {name: fashion}\nspec: {epochs: 3}\n";

        (void) state;
        write_file(f, "job.yaml", yaml);
        open_store(f);
        store_put(f->store, STORE_TRAINING_JOB, "default", "fashion", job, on_answer, f);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(field(f, "TrainingJob default/fashion", "status/phase"), "Running");
        assert_string_equal(field(f, "TrainingJob default/fashion", "spec/epochs"),
                            "?"); /* a number: it is there */
        file = read_file(f, "job.yaml");
        assert_string_equal(file, yaml);
        close_store(f);
        open_store(f);
        assert_string_equal(field(f, "TrainingJob default/fashion", "status/phase"), "Running");
        store_put(f->store, STORE_TRAINING_JOB, "default", "fashion", job, on_answer,
                  f); /* this store writes */
        settle(f);
        remove_file(f, "job.yaml");
        settle(f);
        assert_false(has(f, "TrainingJob default/fashion"));
        write_file(f, "job.yaml", yaml);
        settle(f);
        assert_string_equal(field(f, "TrainingJob default/fashion", "status/phase"),
                            ""); /* a new job of that name */
        json_decref(job);
        fixture_free(f);
}

static void a_patch_lies_beside_the_file(void **state)
{
        struct fixture *f = fixture_new();
        json_t *patch = json_loads("{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":null}}}", 0, NULL);
        json_t *more = json_loads("{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"3\"}}}", 0, NULL);

        (void) state;
        write_file(f, "n.json",
                   "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"labels\":{\"b\":\"2\",\"a\":\"0\"}}}");
        open_store(f);
        store_patch(f->store, STORE_NODE, NULL, "n", patch, on_answer, f);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(field(f, "Node n", "metadata/labels/a"), "1");
        assert_string_equal(field(f, "Node n", "metadata/labels/b"), "");
        store_patch(f->store, STORE_NODE, NULL, "n", more, on_answer, f);
        settle(f);
        assert_string_equal(field(f, "Node n", "metadata/labels/a"), "");
        assert_string_equal(field(f, "Node n", "metadata/labels/b"), "");
        assert_string_equal(field(f, "Node n", "metadata/labels/c"), "3");
        store_patch(f->store, STORE_NODE, NULL, "other", patch, on_answer, f);
        settle(f);
        assert_int_equal(f->result, -ENOENT);
        json_decref(patch);
        json_decref(more);
        fixture_free(f);
}

static void pods_are_created_and_deleted(void **state)
{
        struct fixture *f = fixture_new();
        json_t *pod = json_pack("{s:{s:s}, s:{}}", "metadata", "name", "p", "spec");

        (void) state;
        write_file(f, "a.json", POD_A);
        open_store(f);
        store_create(f->store, STORE_POD, "team", pod, on_answer, f);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_int_equal(strlen(field(f, "Pod team/p", "metadata/uid")), 36);
        assert_true(field(f, "Pod team/p", "metadata/creationTimestamp")[0] == '2');
        store_create(f->store, STORE_POD, "team", pod, on_answer, f);
        settle(f);
        assert_int_equal(f->result, -EEXIST);
        store_delete(f->store, STORE_POD, "team", "p", "wrong", 0, on_answer, f);
        settle(f);
        assert_int_equal(f->result, -ESTALE);
        store_delete(f->store, STORE_POD, "team", "p", NULL, 0, on_answer, f);
        settle(f);
        assert_int_equal(f->result, 0);
        assert_false(has(f, "Pod team/p"));
        store_delete(f->store, STORE_POD, "default", "a", "u-a", 0, on_answer, f); /* somebody else's file */
        settle(f);
        assert_int_equal(f->result, 0);
        assert_false(has(f, "Pod default/a"));
        store_delete(f->store, STORE_POD, "team", "p", NULL, 0, on_answer, f);
        settle(f);
        assert_int_equal(f->result, -ENOENT);
        json_decref(pod);
        fixture_free(f);
}

static void a_directory_that_is_gone_grows_old_and_comes_back(void **state)
{
        struct fixture *f = fixture_new();
        char away[80], left[96];

        (void) state;
        write_file(f, "a.json", POD_A);
        open_store(f);
        (void) text_format(away, sizeof(away), "%s.away", f->path);
        assert_int_equal(rename(f->path, away), 0);
        run_for(f, 50000);
        assert_true(said(f, "is gone"));
        assert_true(store_age_usec(f->store, loop_now_usec(f->loop) + 5000000) >= 5000000);
        assert_true(has(f, "Pod default/a"));
        assert_int_equal(mkdir(f->path, 0755), 0);
        write_file(f, "b.json", POD_B);
        run_for(f, 1300000);
        assert_true(said(f, "is back"));
        assert_true(store_age_usec(f->store, loop_now_usec(f->loop)) == 0);
        assert_false(has(f, "Pod default/a"));
        assert_true(has(f, "Pod default/b"));
        (void) text_format(left, sizeof(left), "%s/a.json", away);
        assert_int_equal(unlink(left), 0);
        assert_int_equal(rmdir(away), 0);
        fixture_free(f);
}

static void bad_specs_are_refused(void **state)
{
        static const struct {
                const char *spec;
                int result;
        } specs[] = { { "dir:", -EINVAL },
                      { "dir:/nonexistent", -ENOENT },
                      { "dir:/etc/passwd", -ENOTDIR },
                      { "etcd", -EINVAL } };
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
                struct store_options options = { .spec = specs[i].spec };
                struct store *store = NULL;
                struct err err = { 0 };
                int r = store_open(loop, &options, &store, &err);

                if (r != specs[i].result || err.msg[0] == '\0')
                        fail_msg("%s: want %d, got %d '%s'", specs[i].spec, specs[i].result, r, err.msg);
        }
        sd_event_unref(loop);
}

static void closing_answers_what_waits(void **state)
{
        struct fixture *f = fixture_new();

        (void) state;
        write_file(f, "a.json", POD_A);
        open_store(f);
        store_bind(f->store, &(struct store_binding){ "default", "a", "u-a", "n1", NULL }, on_answer, f);
        close_store(f);
        assert_int_equal(f->answers, 1);
        assert_int_equal(f->result, -ECANCELED);
        fixture_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(files_of_every_form_are_read),
                cmocka_unit_test(changes_are_seen_and_nothing_else_is_delivered),
                cmocka_unit_test(half_written_files_change_nothing),
                cmocka_unit_test(of_two_files_the_later_counts),
                cmocka_unit_test(a_bind_is_journalled_and_delivered),
                cmocka_unit_test(a_bind_carries_annotations),
                cmocka_unit_test(a_yaml_pod_is_bound_too),
                cmocka_unit_test(a_torn_journal_line_binds_nothing),
                cmocka_unit_test(lines_of_another_process_count),
                cmocka_unit_test(many_binds_at_once_are_one_batch),
                cmocka_unit_test(an_evicted_pod_is_terminating),
                cmocka_unit_test(our_own_objects_are_put_by_rename),
                cmocka_unit_test(a_job_keeps_its_file_and_gets_a_status),
                cmocka_unit_test(a_patch_lies_beside_the_file),
                cmocka_unit_test(pods_are_created_and_deleted),
                cmocka_unit_test(a_directory_that_is_gone_grows_old_and_comes_back),
                cmocka_unit_test(bad_specs_are_refused),
                cmocka_unit_test(closing_answers_what_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
