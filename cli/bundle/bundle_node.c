/* The doctor, the record of the machine and the journal run while the agent is asked. */
#include "cli/bundle/bundle_node.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/version.h"
#include "cli/command/agent_client.h"
#include "io/read_file.h"
#include "job/spec/program_table.h"

#define FOLDER        "node"
#define JOURNAL_LINES "--lines=2000"
#define CONFIG_MAX    ((size_t) 1 << 20)

int bundle_node_take(struct bundle *bundle, struct bundle_child *child, const char *folder, const char *name)
{
        char source[BUNDLE_NAME_BYTES], errors[300];
        struct text output = { 0 };
        struct err err = { 0 };
        int r = bundle_child_end(child, &output, errors, sizeof(errors), &err);
        json_t *value =
                r >= 0 && text_ends_with(name, ".json")
                        ? json_loadb(output.data == NULL ? "" : output.data, output.size_bytes, 0, NULL)
                        : NULL;

        (void) text_format(source, sizeof(source), "%s/%s", folder, name);
        if (r < 0)
                bundle_miss(bundle, source, "%s", err.msg);
        else if (value != NULL)
                bundle_add_json(bundle, folder, BUNDLE_PARTS(name), value);
        else if (output.size_bytes == 0 || text_ends_with(name, ".json"))
                bundle_miss(bundle, source, "it ended with %d and said: %s", r, errors);
        else
                bundle_add_bytes(bundle, folder, BUNDLE_PARTS(name), output.data, output.size_bytes);
        text_free(&output);
        return r;
}

static void add_file(struct bundle *bundle, const char *path, const char *name)
{
        CLEANUP(free_p) char *bytes = NULL;
        char source[100];
        struct err err = { 0 };
        size_t size = 0;

        (void) text_format(source, sizeof(source), FOLDER "/%s", name);
        if (read_file(path, CONFIG_MAX, &bytes, &size, &err) < 0)
                bundle_miss(bundle, source, "%s", err.msg);
        else
                bundle_add_bytes(bundle, FOLDER, BUNDLE_PARTS(name), bytes, size);
}

static void add_versions(struct bundle *bundle)
{
        CLEANUP(free_p) char *release = NULL;
        struct utsname system = { 0 };
        size_t size = 0;

        (void) uname(&system);
        (void) read_file("/etc/os-release", CONFIG_MAX, &release, &size, NULL);
        bundle_add_json(bundle, FOLDER, BUNDLE_PARTS("versions.json"),
                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "remuda", REMUDA_VERSION, "system",
                                  system.sysname, "kernel", system.release, "machine", system.machine,
                                  "libcurl", curl_version(), "jansson", JANSSON_VERSION, "osRelease",
                                  release == NULL ? "" : release));
}

/* Return: false = it does not answer; the rest is not asked. */
static bool ask_agent(struct bundle *bundle, const struct agent_client *client, const char *path,
                      const char *name)
{
        CLEANUP(free_p) char *body = NULL;
        char source[100];
        struct err err = { 0 };
        int r = agent_client_request(client, "GET", path, &body, &err);
        json_t *value = r == 0 && text_ends_with(name, ".json") ? json_loads(body, 0, NULL) : NULL;

        (void) text_format(source, sizeof(source), "agent %s", path);
        if (r < 0)
                bundle_miss(bundle, source, "%s", err.msg);
        else if (value != NULL)
                bundle_add_json(bundle, "agent", BUNDLE_PARTS(name), value);
        else
                bundle_add_bytes(bundle, "agent", BUNDLE_PARTS(name), body, strlen(body));
        return r != -ECONNREFUSED;
}

static void gather_agent(struct bundle *bundle, const struct bundle_node_options *options)
{
        const struct agent_client client = { .socket = options->socket,
                                             .address = options->agent,
                                             .timeout_msec = BUNDLE_SOURCE_USEC / 1000 };

        /* groups, devices and their health are the inventory's; it is masked by what it says of itself */
        if (ask_agent(bundle, &client, "/v1/inventory", "inventory.json") &&
            ask_agent(bundle, &client, "/metrics", "metrics.txt"))
                (void) ask_agent(bundle, &client, options->agent == NULL ? "/v1/launches" : "/readyz",
                                 options->agent == NULL ? "launches.json" : "readyz.txt");
}

static void start(struct bundle_child *child, const struct bundle_node_options *options,
                  const char *const *words)
{
        const char *all[BUNDLE_CHILD_WORDS_MAX] = { NULL };
        size_t count = 0;

        while (words[count] != NULL) {
                all[count] = words[count];
                count++;
        }
        if (options->root != NULL || options->machine != NULL) {
                all[count++] = options->root != NULL ? "--root" : "--machine";
                all[count++] = options->root != NULL ? options->root : options->machine;
        }
        bundle_child_start(child, all, BUNDLE_FILE_BYTES);
}

void bundle_node_gather(struct bundle *bundle, const struct bundle_node_options *options)
{
        static const char *const journal[] = { "journalctl",  "--unit=remuda-agent",
                                               JOURNAL_LINES, "--no-pager",
                                               "--quiet",     NULL };
        const char *programs = options->programs != NULL ? options->programs : PROGRAM_TABLE_PATH;
        bool live = options->root == NULL && options->machine == NULL;
        struct bundle_child doctor, record, log;

        start(&doctor, options,
              (const char *const[]){ "remuda", "doctor", "--output=json", "--socket", options->socket,
                                     "--config", options->config, "--programs", programs, NULL });
        start(&record, options,
              (const char *const[]){ "remuda", "machine", "record", "--mask-serials", NULL });
        if (live)
                bundle_child_start(&log, journal, BUNDLE_FILE_BYTES);
        add_versions(bundle);
        add_file(bundle, options->config, "agent.yaml");
        add_file(bundle, programs, "programs.yaml");
        gather_agent(bundle, options);
        (void) bundle_node_take(bundle, &doctor, FOLDER, "doctor.json");
        if (bundle_node_take(bundle, &record, FOLDER, "machine.txt") == 0)
                bundle_serials_are_masked(bundle);
        if (live)
                (void) bundle_node_take(bundle, &log, FOLDER, "agent-journal.txt");
}
