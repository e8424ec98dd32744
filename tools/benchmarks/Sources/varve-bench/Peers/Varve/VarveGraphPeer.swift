// Varve's public API in the workload of objects with relationships.

import BenchmarkHarness
import Foundation
import VarveObjects

final class VarveGraphPeer: GraphPeer {
    private let container: PersistentContainer
    private let context: ManagedObjectContext
    private var ids: [StoredPhoto.ID] = []

    init(graphDirectory: String, options: PeerOptions) throws {
        container = try PersistentContainer.openNow(
            at: URL(fileURLWithPath: graphDirectory + "/graph.varve"),
            schema: GraphSchema.self,
            options: ContainerOptions(options)
        )
        context = container.newContext()
    }

    func insertGroups(albums: Int, people: Int) throws {
        for number in 0..<albums { StoredAlbum(in: context).name = "album \(number)" }
        for number in 0..<people { StoredPerson(in: context).name = "person \(number)" }
        try context.save()
    }

    func insert(_ photos: [GraphPhoto]) throws {
        let context = container.newContext()
        let albums = try context.fetch(StoredAlbum.all)
        let people = try context.fetch(StoredPerson.all)
        for photo in photos {
            let object = StoredPhoto(in: context)
            object.title = photo.title
            object.stars = photo.stars
            object.album = albums[photo.album]
            object.author = people[photo.author]
        }
        try context.save()
    }

    func prepareToFind(photos: Int) throws {
        ids = try context.fetchIDs(StoredPhoto.all)
        guard ids.count == photos else { throw BenchmarkError("\(ids.count) of \(photos) IDs") }
    }

    func rate(_ changes: [RowChange<Int>]) throws {
        for change in changes {
            try context.object(with: ids[Int(change.id) - 1]).stars = change.value
        }
        try context.save()
    }

    func deleteAlbums() throws {
        let context = container.newContext()
        for album in try context.fetch(StoredAlbum.all) { context.delete(album) }
        try context.save()
    }

    func photoSum() throws -> (photos: Int, sum: UInt64) {
        let context = container.newContext()
        let photos = try context.fetch(StoredPhoto.all)
        // Objects do not keep their context.
        return withExtendedLifetime(context) {
            let sum = photos.reduce(UInt64(0)) { sum, photo in
                let (album, author) = (photo.album?.name ?? "", photo.author?.name ?? "")
                return sum &+ GraphPhoto.sum(photo.title, photo.stars, album, author)
            }
            return (photos.count, sum)
        }
    }

    func photosOfPeople() throws -> Int {
        let context = container.newContext()
        let people = try context.fetch(StoredPerson.all)
        return withExtendedLifetime(context) { people.reduce(0) { $0 + $1.photos.count } }
    }

    func close() throws { try container.closeNow() }
}

// Workload s
extension VarveGraphPeer: PrefetchPeer {
    func photosWithAuthors(_ limit: Int) throws -> (photos: Int, sum: UInt64) {
        let request = StoredPhoto.all.limit(limit).returningFaults(false)
        let photos = try container.newContext().fetch(request.prefetch { $0.author })
        let sum = photos.reduce(UInt64(0)) { sum, photo in
            let author = photo.author?.name ?? ""
            return sum &+ GraphPhoto.readingSum(photo.title, photo.stars, author)
        }
        return (photos.count, sum)
    }

    func peopleWithPhotos(_ limit: Int) throws -> (photos: Int, sum: UInt64) {
        let request = StoredPerson.all.limit(limit).returningFaults(false)
        var (count, sum) = (0, UInt64(0))
        for person in try container.newContext().fetch(request.prefetch { $0.photos }) {
            let name = person.name
            for photo in person.photos {
                count += 1
                sum &+= GraphPhoto.readingSum(photo.title, photo.stars, name)
            }
        }
        return (count, sum)
    }
}
