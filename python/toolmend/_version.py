VERSION = ""  # the release of the binary, such as v0.1.0: the wheel's builder writes it
