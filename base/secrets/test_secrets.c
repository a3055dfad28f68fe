/* Secrets: nothing of them is left, however they are written; what is none stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/secrets/secret_name.h"
#include "base/secrets/secrets.h"
#include "base/secrets/serials.h"

#define S "Zq7hunter2Xv9"

/* In each of them S is the secret. */
/* clang-format off */
static const struct {
        const char *what, *text;
} hidden[] = {
        { "a shell's variable",                "export API_TOKEN=" S " && run" },
        { "... in quotes",                     "PASSWORD=\"" S " more\"" },
        { "... in quotes of two kinds",        "PASSWORD=\"x\"'" S "'" },
        { "... whose name is in capitals",     "AWS_SECRET_ACCESS_KEY=" S },
        { "... or in a camel's",               "clientKeyData: " S },
        { "... with blanks around the sign",   "password  =  " S },
        { "an option",                         "run --token " S " --steps 5" },
        { "... with a sign",                   "run --api-key=" S },
        { "... in a list of JSON",             "[\"--token\",\"" S "\"]" },
        { "... in a list of YAML",             "args:\n- --password\n- " S "\n" },
        { "YAML",                              "token: " S "\n" },
        { "... with blanks in it",             "password: correct " S " horse\n" },
        { "... with a quote in it",            "password: ab\"" S "\n" },
        { "... folded",                        "password:\n  " S "\n" },
        { "... a block",                       "password: |\n    first\n    " S "\n" },
        { "... a block with an empty line",    "password: |\n    first\n\n    " S "\n" },
        { "... a list, no deeper than its name", "tokens:\n- " S "\n" },
        { "... a list, deeper",                "tokens:\n  - a\n  - " S "\n" },
        { "... in single quotes",              "token: 'it''s " S "'\n" },
        { "... in a flow",                     "{token: " S ", other: b}" },
        { "... quoted, with a comma",          "\"password\": ab," S "\n" },
        { "JSON",                              "{\"token\":\"" S "\"}" },
        { "... with blanks and lines",         "{\"token\" :\n  \"" S "\"}" },
        { "... with a quote in it",            "{\"token\":\"a\\\"" S "\"}" },
        { "... in a string of JSON",           "{\"m\":\"{\\\"token\\\":\\\"" S "\\\"}\"}" },
        { "... in that, with a quote in it",   "{\"m\":\"{\\\"token\\\":\\\"a\\\\\\\"" S "\\\"}\"}" },
        { "... never ended",                   "{\"token\":\"" S },
        { "... an object",                     "{\"credentials\":{\"user\":\"" S "\"}}" },
        { "a pair of JSON",                    "{\"name\":\"DB_PASSWORD\",\"value\":\"" S "\"}" },
        { "a pair of YAML",                    "- name: DB_PASSWORD\n  value: " S "\n" },
        { "a pair in a string of JSON",        "{\\\"name\\\":\\\"DB_PASSWORD\\\",\\\"value\\\":\\\"" S "\\\"}" },
        { "a header",                          "Authorization: Bearer " S "\r\nAccept: */*" },
        { "... of another form",               "Authorization: Basic " S "\r\n" },
        { "... of our own",                    "X-Auth-Key: " S "\r\n" },
        { "... in a command",                  "curl -H 'authorization: bearer " S "' https://h" },
        { "... said in a sentence",            "refused bearer " S ", try another" },
        { "a cookie",                          "Set-Cookie: session=" S "; Path=/" },
        { "a URL's password",                  "pull https://user:" S "@host/path" },
        { "... with a slash in it",            "pull https://user:a/" S "@host/path" },
        { "... with an at in it",              "pull https://user:a@" S "@host/path" },
        { "a URL's user alone",                "git clone https://" S "@host/x.git" },
        { "a query",                           "GET /x?access_token=" S "&y=1" },
        { "... with escapes",                  "redirect=%2Fx%3Ftoken%3D" S },
        { "a signature",                       "https://s3/x?X-Amz-Signature=" S },
        { "words for a name",                  "the API key: " S },
        { "a key in PEM",                      "-----BEGIN PRIVATE KEY-----\n" S "\n-----END PRIVATE KEY-----\n" },
        { "... of RSA, in a log",              "t=1 -----BEGIN RSA PRIVATE KEY-----\nt=2 " S "\nt=3 -----END RSA PRIVATE KEY-----" },
        { "... in a string of JSON",           "\"-----BEGIN EC PRIVATE KEY-----\\n" S "\\n-----END EC PRIVATE KEY-----\\n\"" },
        { "... never ended",                   "-----BEGIN OPENSSH PRIVATE KEY-----\n" S },
        { "... begun before a log was cut",    S "\n-----END PRIVATE KEY-----\nlater" },
        { "... before a certificate",          "-----BEGIN PRIVATE KEY-----\n" S "\n-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----" },
        { "... after dashes",                  "---------BEGIN PRIVATE KEY-----\n" S "\n-----END PRIVATE KEY-----" },
        { "a JWT",                             "said eyJhbGciOiJIUzI1NiJ9." S ".sig" },
        { "a key known by its first letters",  "hf_" S "abcdef" },
        { "what a quote left open before",     "password=\"x token: \"" S "\"" },
        { "... and an open key of a map",      "{\"token\":\"\\\", \"secret\": \"" S "\"}" },
        { "a lisp's",                          "(token . x) password=> " S },
        { "Go's",                              "struct{Token:" S "}" },
        { "Go's, assigned",                    "token := \"" S "\"" },
};

/* All of them stay as they are. */
static const char *const shown[] = {
        "2026-11-28T06:11:00Z level=info event=listening address=127.0.0.1:9510",
        "remuda_device_health{uuid=\"0000:21:00.0\",model=\"A100\"} 1",
        "https://example.com:8080/path?a=b@c",
        "docker.io/library/busybox@sha256:0123456789abcdef",
        "tokenizer: gpt2", "the key of the matter", "topologyKey: kubernetes.io/hostname", "secretName: remuda-tls",
        "tokenFile: /var/run/x", "effect: NoSchedule\nkey: example.com/gpu", "basic training", "mail root@localhost",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "", "\n", "//", "keyboard: de",
};

static const char *const secret_names[] = { "PASSWORD", "DB_PASS", "api-token", "clientKeyData", "HF_TOKEN", "Cookie", "sshKey", "x.jwt", "PGPASSWORD",
        "AWS_SECRET_ACCESS_KEY", "Proxy-Authorization", "mysecrets", "SIG", "auth", "client-key-data", "apikey" };
static const char *const plain_names[] = { "key", "name", "secretName", "tokenPath", "password_file", "tokenizer", "public_key", "signal", "author", "", "bypassed" };
/* clang-format on */

static char *masked(const char *text)
{
        struct secrets secrets = { 0 };
        struct text out = { 0 };

        secrets_mask_text(&secrets, text, strlen(text), &out);
        assert_false(secrets.failed);
        secrets_free(&secrets);
        return text_take(&out, NULL);
}

static void nothing_of_a_secret_is_left(void **state)
{
        unsigned failures = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
                CLEANUP(free_p) char *out = masked(hidden[i].text);

                assert_non_null(strstr(hidden[i].text, S));
                if (strstr(out, S) != NULL || strstr(out, SECRETS_MASK) == NULL) {
                        print_error("%s: %s\n", hidden[i].what, out);
                        failures++;
                }
        }
        assert_int_equal(failures, 0);
}

static void what_is_no_secret_stays(void **state)
{
        unsigned failures = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
                CLEANUP(free_p) char *out = masked(shown[i]);

                if (strcmp(out, shown[i]) != 0) {
                        print_error("%s: %s\n", shown[i], out);
                        failures++;
                }
        }
        assert_int_equal(failures, 0);
}

static void the_rest_of_a_line_is_left(void **state)
{
        CLEANUP(free_p)
        char *shell = masked("a=1 token=" S " b=2"), *json = masked("{\"token\":\"" S "\",\"b\":2}"),
             *yaml = masked("a: 1\ntoken: " S "\n  x\nb: 2\n"),
             *number = masked("{\"token\": 12345678, \"b\": 2}"), *url = masked("https://me:" S "@host/x y");

        (void) state;
        assert_string_equal(shell, "a=1 token=[masked] b=2");
        assert_string_equal(json, "{\"token\":\"[masked]\",\"b\":2}");
        assert_string_equal(yaml, "a: 1\ntoken: [masked]\n  [masked]\nb: 2\n");
        assert_string_equal(number, "{\"token\": [masked], \"b\": 2}");
        assert_string_equal(url, "https://[masked]@host/x y");
}

static void names_say_what_is_secret(void **state)
{
        char much[1000];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(secret_names); i++)
                if (!secret_name(secret_names[i], strlen(secret_names[i])))
                        fail_msg("%s", secret_names[i]);
        for (size_t i = 0; i < ARRAY_SIZE(plain_names); i++)
                if (secret_name(plain_names[i], strlen(plain_names[i])))
                        fail_msg("%s", plain_names[i]);
        memset(much, 'x', sizeof(much));
        memcpy(much + sizeof(much) - 5, "token", 5);
        assert_true(secret_name(much, sizeof(much)));
}

/* clang-format off */
static const char value[] =
        "{\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":\"" S "\"},{\"value\":\"" S "\",\"name\":\"DB_PASSWORD\"},{\"name\":\"STEPS\",\"value\":\"5\"}],"
        "\"args\":[\"--token\",\"" S "1\",\"--steps\",\"5\",\"--key=x\",\"--api-key=" S "2\"],"
        "\"credentials\":{\"deep\":[{\"user\":\"" S "3\"},7]},\"enabledToken\":true,\"noToken\":null,"
        "\"message\":\"Bearer " S "4\",\"annotation\":\"{\\\"token\\\":\\\"" S "5\\\"}\",\"Bearer " S "6\":1,"
        "\"log\":\"said " S " again\",\"pin_token\":" "12345678" "}";
/* clang-format on */

static void json_is_masked_by_its_fields(void **state)
{
        json_t *object = json_loads(value, 0, NULL), *copy;
        struct secrets secrets = { 0 };
        CLEANUP(free_p) char *text = NULL;

        (void) state;
        assert_non_null(object);
        secrets_study(&secrets, object);
        copy = secrets_mask_json(&secrets, object);
        text = json_dumps(copy, JSON_COMPACT);
        if (text == NULL || strstr(text, S) != NULL || strstr(text, "12345678") != NULL)
                fail_msg("%s", text);
        assert_non_null(strstr(text, "{\"name\":\"STEPS\",\"value\":\"5\"}"));
        assert_non_null(strstr(text, "\"--steps\",\"5\""));
        assert_non_null(strstr(text, "\"enabledToken\":true,\"noToken\":null"));
        assert_non_null(strstr(text, "\"said [masked] again\"")); /* studied elsewhere */
        json_decref(object);
        json_decref(copy);
        secrets_free(&secrets);
}

static void json_without_end_is_masked_whole(void **state)
{
        struct secrets secrets = { 0 };
        json_t *deep = json_string(S), *copy;
        CLEANUP(free_p) char *text = NULL;

        (void) state;
        for (unsigned i = 0; i < 200; i++)
                deep = json_pack("[o]", deep);
        copy = secrets_mask_json(&secrets, deep);
        text = json_dumps(copy, JSON_COMPACT);
        assert_null(strstr(text, S));
        json_decref(deep);
        json_decref(copy);
        secrets_free(&secrets);
}

static void serials_are_replaced_equal_for_equal(void **state)
{
        json_t *object = json_loads("{\"devices\":[{\"id\":\"GPU-5e0020b5-0000-4000-8000-0000000000ab\","
                                    "\"pci\":\"0000:11:00.0\"},"
                                    "{\"id\":\"xilinx-21320621V00D\",\"pci\":\"0000:65:00.0\"},{\"id\":"
                                    "\"0000:04:00.0\",\"pci\":\"0000:04:"
                                    "00.0\"},{\"id\":\"cpu-numa0\",\"pci\":\"\"}],\"bootID\":\"0f0e0d0c-0000-"
                                    "4000-8000-000000000001\"}",
                                    0, NULL);
        struct secrets secrets = { 0 };
        struct text out = { 0 };
        const char *log = "21320621V00D GPU-5e0020b5-0000-4000-8000-0000000000ab, cpu-numa0 0000:04:00.0 "
                          "0f0e0d0c-0000-4000-8000-000000000001 GPU-99999999-0000-4000-8000-000000000000";
        char number[] = "21320621V00D";

        (void) state;
        secrets_study(&secrets, object);
        secrets_mask_text(&secrets, log, strlen(log), &out);
        assert_null(strstr(out.data, "21320621V00D"));
        assert_null(strstr(out.data, "5e0020b5"));
        assert_null(strstr(out.data, "0f0e0d0c"));
        assert_null(strstr(out.data, "99999999")); /* of no inventory, but nothing else looks so */
        assert_non_null(strstr(out.data, "cpu-numa0 0000:04:00.0"));
        assert_int_equal(strlen(out.data), strlen(log));
        serials_mask(number, strlen(number));
        assert_true(text_starts_with(out.data, number)); /* as a machine record has it */
        assert_int_equal(secrets.serials_masked, 4);
        text_free(&out);
        json_decref(object);
        secrets_free(&secrets);
}

static void lines_of_json_are_masked_as_json(void **state)
{
        static const char log[] =
                "plain token=" S " x\n{\"a\":\"b\",\"password\":\"" S "\",\"c\":1}\n"
                "-----BEGIN PRIVATE KEY-----\n{\"c\":2}\n" S "\n-----END PRIVATE KEY-----\nend\n";
        struct secrets secrets = { 0 };
        struct text out = { 0 };

        (void) state;
        secrets_mask_lines(&secrets, log, strlen(log), &out);
        assert_null(strstr(out.data, S));
        assert_non_null(strstr(out.data,
                               "plain token=[masked] x\n{\"a\":\"b\",\"password\":\"[masked]\",\"c\":1}\n"));
        text_free(&out);
        secrets_free(&secrets);
}

static void what_is_learned_is_masked_everywhere(void **state)
{
        struct secrets secrets = { 0 };
        struct text out = { 0 };

        (void) state;
        secrets_learn(&secrets, S);
        secrets_learn(&secrets, S);
        secrets_learn(&secrets, "short");
        secrets_learn(&secrets, NULL);
        assert_int_equal(secrets.value_count, 1);
        secrets_mask_text(&secrets, "x" S S "y short", strlen("x" S S "y short"), &out);
        assert_string_equal(out.data, "x[masked]y short");
        text_free(&out);
        secrets_free(&secrets);
}

static double cpu_sec(void)
{
        return (double) clock() / (double) CLOCKS_PER_SEC;
}

static double seconds_for(const char *piece, size_t size)
{
        CLEANUP(free_p) char *text = malloc(size);
        struct secrets secrets = { 0 };
        struct text out = { 0 };
        double begin;

        for (size_t at = 0; at < size; at++)
                text[at] = piece[at % strlen(piece)];
        begin = cpu_sec();
        secrets_mask_text(&secrets, text, size, &out);
        begin = cpu_sec() - begin;
        text_free(&out);
        secrets_free(&secrets);
        return begin;
}

/* Each name's value goes on behind the next name: what is hidden already is not gone through again. By CPU
 * time, which other programs do not take: eight times the text takes eight times as long, not sixty-four. */
static void a_name_after_the_other_takes_no_longer(void **state)
{
        static const char *const pieces[] = { "token:",  "token=", "token:\"a\"",          "--token,",
                                              "eyJ",     "a:b@//", "-----END PRIVATE KEY", "\ntoken:",
                                              "token:'", "key: " };
        const size_t size = (size_t) 256 << 10;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
                double one = 0, eight = 1;

                /* who shares its caches may slow one down: what grows too fast does so each time */
                for (unsigned tries = 0; tries < 3 && eight > 0.2 && eight > 24 * one; tries++) {
                        one = seconds_for(pieces[i], size);
                        eight = seconds_for(pieces[i], 8 * size);
                }
                if (eight > 0.2 && eight > 24 * one)
                        fail_msg("%s: %.3f s, and %.3f s of eight times as much", pieces[i], one, eight);
        }
}

static void more_than_can_be_learned_is_said(void **state)
{
        struct secrets secrets = { 0 };
        char word[32];

        (void) state;
        for (unsigned i = 0; i < SECRETS_MAX; i++) {
                (void) text_format(word, sizeof(word), "value-%08u", i);
                secrets_learn(&secrets, word);
        }
        secrets_learn(&secrets, word); /* known */
        assert_false(secrets.full);
        secrets_learn(&secrets, "one-more-of-them");
        assert_true(secrets.full);
        assert_int_equal(secrets.value_count, SECRETS_MAX);
        secrets_free(&secrets);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_of_a_secret_is_left),
                cmocka_unit_test(what_is_no_secret_stays),
                cmocka_unit_test(the_rest_of_a_line_is_left),
                cmocka_unit_test(names_say_what_is_secret),
                cmocka_unit_test(json_is_masked_by_its_fields),
                cmocka_unit_test(json_without_end_is_masked_whole),
                cmocka_unit_test(serials_are_replaced_equal_for_equal),
                cmocka_unit_test(lines_of_json_are_masked_as_json),
                cmocka_unit_test(what_is_learned_is_masked_everywhere),
                cmocka_unit_test(a_name_after_the_other_takes_no_longer),
                cmocka_unit_test(more_than_can_be_learned_is_said),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
