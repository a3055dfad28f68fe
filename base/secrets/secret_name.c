/* Letters and digits of a name alone count: API_KEY, apiKey and api-key are one name. */
#include "base/secrets/secret_name.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static bool has_any(const char *plain, const char *const *words)
{
        for (; *words != NULL; words++)
                if (strstr(plain, *words) != NULL)
                        return true;
        return false;
}

static bool ends_with_any(const char *plain, const char *const *words)
{
        for (; *words != NULL; words++)
                if (text_ends_with(plain, *words))
                        return true;
        return false;
}

static bool is_any(const char *plain, const char *const *words)
{
        for (; *words != NULL; words++)
                if (strcmp(plain, *words) == 0)
                        return true;
        return false;
}

/* A tokenizer is none: its word is taken out. */
static void forget_tokenizers(char *plain)
{
        for (char *at; (at = strstr(plain, "tokeniz")) != NULL;)
                memmove(at, at + strlen("tokeniz"), strlen(at + strlen("tokeniz")) + 1);
}

static void plain_name(const char *name, size_t size, char plain[SECRET_NAME_MAX_BYTES + 1])
{
        size_t length = 0;

        if (size > SECRET_NAME_MAX_BYTES) {
                name += size - SECRET_NAME_MAX_BYTES;
                size = SECRET_NAME_MAX_BYTES;
        }
        for (size_t i = 0; i < size; i++) {
                char c = name[i];

                if (c >= 'A' && c <= 'Z')
                        c = (char) (c - 'A' + 'a');
                if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
                        plain[length++] = c;
        }
        plain[length] = '\0';
}

bool secret_name(const char *name, size_t size)
{
        static const char *const words[] = { "token",     "passw",    "passphrase", "secret",  "credential",
                                             "bearer",    "authoriz", "apikey",     "keydata", "privatekey",
                                             "accesskey", "cookie",   "signature",  NULL };
        static const char *const ends[] = { "key", "pwd", "pass", "auth", "jwt", NULL };
        static const char *const whole[] = { "key", "publickey", "topologykey", NULL };
        static const char *const places[] = { "name", "file", "path", "dir", NULL };
        char plain[SECRET_NAME_MAX_BYTES + 1];

        plain_name(name, size, plain);
        forget_tokenizers(plain);
        if (ends_with_any(plain, places))
                return false;
        return has_any(plain, words) || strcmp(plain, "sig") == 0 ||
               (ends_with_any(plain, ends) && !is_any(plain, whole));
}

bool secret_name_bare(const char *name, size_t size)
{
        char plain[SECRET_NAME_MAX_BYTES + 1];

        plain_name(name, size, plain);
        return text_ends_with(plain, "bearer");
}
