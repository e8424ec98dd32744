// The program `gallery`.

import ArgumentParser
import GalleryKit

@main
enum Gallery {
    static func main() async { await GalleryCommand.main() }
}
