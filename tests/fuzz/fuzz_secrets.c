/* No secret that is planted survives: whatever stands before and behind it, a secret in one of the forms in
 * which people and programs write them is masked, in texts, in lines of logs and in JSON; and what is masked
 * of JSON is JSON again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secrets/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* clang-format off */
static const char *const forms[] = {
        "token=%s", "password: %s", "--api-key %s", "--secret=%s ", "\"token\":\"%s\"", "\\\"token\\\":\\\"%s\\\"", "PASSWORD='%s'",
        "Authorization: Basic %s", "Bearer %s", "https://user:%s@host/", "-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----",
        "\n- name: API_TOKEN\n  value: %s\n", "{\"name\":\"API_TOKEN\",\"value\":\"%s\"}", "?access_token=%s&", "\ntoken:\n  %s\n", "\ntoken: |\n  a\n  %s\n",
        "[\"--token\",\"%s\"]", "Cookie: a=%s", "token%%3D%s", "\nsecret_key  =  \"%s\"", " eyJhbGciOiJIUzI1NiJ9.%s.x ", " ghp_%s ", "api key: %s",
};
/* clang-format on */

static void check(const char *masked, const char *secret, const char *how)
{
        if (masked == NULL || strstr(masked, secret) != NULL) {
                fprintf(stderr, "%s: %s\n", how, masked == NULL ? "nothing" : masked);
                abort();
        }
}

/* The bytes with a secret among them; zeros of the input are blanks, so that all is looked at. */
static char *plant(const uint8_t *data, size_t size, const char *form, const char *secret, size_t *ret_size)
{
        size_t split = size == 0 ? 0 : data[0] % (size + 1);
        char planted[512];
        struct text text = { 0 };

        (void) snprintf(planted, sizeof(planted), form, secret);
        text_append_bytes(&text, data, split);
        text_append(&text, planted);
        text_append_bytes(&text, data + split, size - split);
        for (size_t i = 0; i < text.size_bytes; i++)
                text.data[i] = (char) (text.data[i] == '\0' ? ' ' : text.data[i]);
        return text_take(&text, ret_size);
}

static void check_json(struct secrets *secrets, const char *bytes, size_t size)
{
        json_t *value = json_loadb(bytes, size, JSON_DECODE_ANY, NULL), *copy;
        CLEANUP(free_p) char *text = NULL;

        if (value == NULL)
                return;
        secrets_study(secrets, value);
        copy = secrets_mask_json(secrets, value);
        text = json_dumps(copy, JSON_ENCODE_ANY);
        if (text == NULL)
                abort();
        json_decref(value);
        json_decref(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *form = forms[size > 1 ? data[1] % ARRAY_SIZE(forms) : 0];
        static const char secret[] = "Qz7planted0Xv94kW";
        struct secrets secrets = { 0 };
        struct text out = { 0 }, lines = { 0 };
        CLEANUP(free_p) char *text = NULL;
        size_t text_size = 0;
        json_t *object, *copy;
        CLEANUP(free_p) char *dumped = NULL;

        if (size > 65536 || memmem(data, size, secret, strlen(secret)) != NULL)
                return 0;
        text = plant(data, size, form, secret, &text_size);
        secrets_mask_text(&secrets, text, text_size, &out);
        check(out.data, secret, "text");
        secrets_mask_lines(&secrets, text, text_size, &lines);
        check(lines.data, secret, "lines");
        object = json_pack("{s:o}", "message", json_stringn(text, text_size));
        if (object != NULL) { /* else it is no UTF-8 */
                copy = secrets_mask_json(&secrets, object);
                dumped = json_dumps(copy, 0);
                check(dumped, secret, "JSON");
                json_decref(object);
                json_decref(copy);
        }
        check_json(&secrets, (const char *) data, size);
        text_free(&out);
        text_free(&lines);
        secrets_free(&secrets);
        return 0;
}
