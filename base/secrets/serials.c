/* A token's hash chooses its letters. */
#include "base/secrets/serials.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"

void serials_mask(char *token, size_t size)
{
        uint64_t h = hash_bytes(token, size, 0);
        bool decimal = strspn(token, "0123456789") >= size;

        for (size_t i = size > 2 && token[0] == '0' && token[1] == 'x' ? 2 : 0; i < size; i++) {
                h = h * 6364136223846793005u + 1442695040888963407u;
                if (token[i] >= '0' && token[i] <= '9')
                        token[i] = (char) ('0' + (h >> 33) % 10);
                else if (token[i] >= 'a' && token[i] <= 'z' && token[i] != 'x')
                        token[i] = (char) ('a' + (h >> 33) % 6);
                else if (token[i] >= 'A' && token[i] <= 'Z')
                        token[i] = (char) ('A' + (h >> 33) % 6);
        }
        if (decimal && size > 1) /* neither longer than 64 bit nor shorter than it was */
                token[0] = '1';
}

bool serials_is_uuid(const char *token, size_t size)
{
        if (size != 36)
                return false;
        for (size_t i = 0; i < size; i++)
                if ((i == 8 || i == 13 || i == 18 || i == 23) != (token[i] == '-'))
                        return false;
        return true;
}

size_t serials_prefix(const char *id, size_t size)
{
        size_t letters = 0;

        while (letters < size && ((id[letters] | 0x20) >= 'a' && (id[letters] | 0x20) <= 'z'))
                letters++;
        return letters > 0 && letters < size && id[letters] == '-' && !serials_is_uuid(id, size) ? letters + 1
                                                                                                 : 0;
}
