/* One request at a time by libcurl; the metrics page is searched as text. */
#include "cli/command/agent_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/text.h"

#define ANSWER_MAX_BYTES ((size_t) 16 << 20)
#define TIMEOUT_MSEC     5000

static size_t on_body(char *bytes, size_t size, size_t count, void *userdata)
{
        struct text *body = userdata;

        text_append_bytes(body, bytes, size * count);
        return body->failed ? 0 : size * count;
}

/* The agent's {"error": sentence}, or the status alone. */
static int refuse(long status, const char *body, struct err *err)
{
        json_t *object = json_loads(body != NULL ? body : "", 0, NULL);
        struct json_field root = json_field_root(object);
        const char *sentence = NULL;
        int error = status == 404 ? -ENOENT : status == 403 ? -EACCES : status == 409 ? -EBUSY : -EIO;

        if (json_field_string(&root, "error", &sentence, NULL) == 0)
                (void) err_set(err, error, "%s", sentence);
        else
                (void) err_set(err, error, "the agent answers with status %ld", status);
        json_decref(object);
        return error;
}

static CURLcode perform(const struct agent_client *client, const char *method, const char *path,
                        struct text *body, long *ret_status)
{
        CURL *curl = curl_easy_init();
        char url[1024];
        CURLcode code;

        if (curl == NULL)
                return CURLE_OUT_OF_MEMORY;
        (void) text_format(url, sizeof(url), "http://%s%s",
                           client->address != NULL ? client->address : "localhost", path);
        (void) curl_easy_setopt(curl, CURLOPT_URL, url);
        if (client->address == NULL)
                (void) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH,
                                        client->socket != NULL ? client->socket : AGENT_CLIENT_SOCKET);
        (void) curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                                (long) (client->timeout_msec != 0 ? client->timeout_msec : TIMEOUT_MSEC));
        (void) curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
        (void) curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
        (void) curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
        if (strcmp(method, "POST") == 0)
                (void) curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
        code = curl_easy_perform(curl);
        (void) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
        curl_easy_cleanup(curl);
        return code;
}

int agent_client_request(const struct agent_client *client, const char *method, const char *path, char **ret,
                         struct err *err)
{
        struct text body = { .max_bytes = ANSWER_MAX_BYTES };
        long status = 0;
        CURLcode code = perform(client, method, path, &body, &status);
        int r = 0;

        if (code != CURLE_OK)
                r = err_set(
                        err, -ECONNREFUSED,
                        "no agent answers at %s: %s; start remuda-agent, or name it with --socket or --agent",
                        client->address != NULL  ? client->address
                        : client->socket != NULL ? client->socket
                                                 : AGENT_CLIENT_SOCKET,
                        curl_easy_strerror(code));
        else if (status < 200 || status > 299)
                r = refuse(status, body.data, err);
        if (r == 0) {
                *ret = text_take(&body, NULL);
                r = *ret == NULL ? err_set(err, -ENOMEM, "no memory for the answer") : 0;
        }
        text_free(&body);
        return r;
}

int agent_client_inventory(const struct agent_client *client, struct inventory *ret, struct err *err)
{
        CLEANUP(free_p) char *body = NULL;
        json_t *object;
        int r = agent_client_request(client, "GET", "/v1/inventory", &body, err);

        if (r < 0)
                return r;
        object = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
        if (object == NULL)
                return err_set(err, -EBADMSG, "the agent's answer is not JSON");
        r = inventory_json_decode(object, ret, err);
        json_decref(object);
        return r;
}

char *agent_client_escape(const char *value)
{
        CURL *curl = curl_easy_init();
        char *escaped = curl != NULL ? curl_easy_escape(curl, value, 0) : NULL;
        char *copy = escaped != NULL ? strdup(escaped) : NULL;

        curl_free(escaped);
        curl_easy_cleanup(curl);
        return copy;
}

/* Does the line, which ends at `end`, hold the text? */
static bool line_has(const char *line, const char *end, const char *text)
{
        size_t n = strlen(text);

        for (; line + n <= end; line++)
                if (memcmp(line, text, n) == 0)
                        return true;
        return false;
}

/* The number at the end of a line. */
static bool read_number(const char *line, const char *end, double *ret)
{
        const char *space = memrchr(line, ' ', (size_t) (end - line));
        char number[64];

        return space != NULL && (size_t) (end - space) <= sizeof(number) &&
               text_format(number, sizeof(number), "%.*s", (int) (end - space - 1), space + 1) &&
               text_parse_double(number, ret) == 0;
}

const char *agent_client_find_metric(const char *page, const char *name, const char *const *labels,
                                     double *ret)
{
        size_t n = strlen(name);

        for (const char *line = page, *end; line != NULL && *line != '\0';
             line = *end == '\n' ? end + 1 : NULL) {
                bool all = true;

                end = line + strcspn(line, "\n");
                if (strncmp(line, name, n) != 0 || (line[n] != '{' && line[n] != ' '))
                        continue;
                for (const char *const *l = labels; l != NULL && *l != NULL && all; l++)
                        all = line_has(line, end, *l);
                if (all && read_number(line, end, ret))
                        return line;
        }
        return NULL;
}

bool agent_client_metric(const char *page, const char *name, const char *const *labels, double *ret)
{
        return agent_client_find_metric(page, name, labels, ret) != NULL;
}
