/*
 * replay.c: gives the files and folders that it is called with to a fuzz target, without libFuzzer.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

static unsigned long inputs;

/* In a block of exactly its size, so that the sanitizer sees a read beside it. */
static int feed(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)walk;
    if (type != FTW_F)
        return 0;
    const size_t size = (size_t)about->st_size;
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (file == NULL || data == NULL || fread(data, 1, size, file) != size) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
    return 0;
}

int main(int argc, char **argv)
{
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], feed, 16, FTW_PHYS) != 0) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
    printf("%s: %lu inputs, every promise kept\n", argv[0], inputs);
    return inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
